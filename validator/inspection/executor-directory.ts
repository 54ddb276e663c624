/** Caches the list of executors of the central API. */
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { CentralClient } from '../central-client.ts';

export type ExecutorDirectory = ReturnType<typeof createExecutorDirectory>;

/** A lookup of an unknown id reloads the list at most this often. */
const MISS_REFRESH_MS = 1_000;

/** Listed properties whose change makes the last verdict outdated. */
const listedAs = (executor: ExecutorToCheck) =>
  JSON.stringify([
    executor.executor_ip_address,
    executor.executor_ip_port,
    executor.miner_hotkey,
    executor.gpu_type,
    executor.gpu_count,
    executor.collateral_deposited,
    executor.provider_banned ?? null,
    executor.maintenance_ms ?? null,
  ]);

export function createExecutorDirectory({
  central,
  clock,
  log,
}: {
  central: CentralClient;
  clock: Clock;
  log: Log;
}) {
  let known = new Map<string, ExecutorToCheck>();
  let changed = new Set<string>();
  let refreshedAtMs = Number.NEGATIVE_INFINITY;
  let refreshing: Promise<void> | null = null;
  /** Why the last read failed; null after a successful one. */
  let failure: string | null = null;

  async function read(): Promise<void> {
    const list = await central.listExecutors();
    for (const executor of list) {
      const before = known.get(executor.id);
      if (before !== undefined && listedAs(before) !== listedAs(executor)) changed.add(executor.id);
    }
    known = new Map(list.map((executor) => [executor.id, executor]));
    refreshedAtMs = clock.monotonicMs();
  }

  /** Reads the list again; concurrent callers share one request. */
  function refresh(): Promise<void> {
    refreshing ??= read()
      .then(
        () => {
          failure = null;
        },
        (error: unknown) => {
          failure = messageOf(error);
          throw error;
        },
      )
      .finally(() => {
        refreshing = null;
      });
    return refreshing;
  }

  return {
    /** Reloads the list and returns all ids. Returns the ids of the last list while the central API does not answer. */
    async ids(): Promise<ReadonlySet<string>> {
      try {
        await refresh();
      } catch (error) {
        if (known.size === 0) throw error;
        log.warn(
          { error: messageOf(error), known: known.size },
          'executor list failed to load, using the last one',
        );
        // The listed pods may be outdated: drop them, so that no check fails because of outdated pods.
        known = new Map([...known].map(([id, executor]) => [id, { ...executor, pod_ids: null }]));
      }
      return new Set(known.keys());
    },
    /** Returns and clears the ids of executors whose listing changed. */
    drainChanged(): string[] {
      const drained = [...changed];
      changed = new Set();
      return drained;
    },
    /** Describes for operators whether the central API answered the last request. Throws if it did not. */
    state(): string {
      if (failure !== null) throw new Error(failure);
      return refreshedAtMs === Number.NEGATIVE_INFINITY ? 'not requested yet' : 'answers';
    },
    known: (): ExecutorToCheck[] => [...known.values()],
    /** Throws ApiError `node_not_found` for an unlisted executor. */
    async find(id: string): Promise<ExecutorToCheck> {
      if (!known.has(id) && clock.monotonicMs() - refreshedAtMs >= MISS_REFRESH_MS) await refresh();
      const executor = known.get(id);
      if (executor === undefined) throw new ApiError('node_not_found', 'There is no such node');
      return executor;
    },
  };
}
