/** Which executors there are and where: read from the central API, the last good list kept. */
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { CentralClient } from '../central-client.ts';

export type ExecutorDirectory = ReturnType<typeof createExecutorDirectory>;

/** A miss reads the list again, but no more often than this: unknown ids must not become a load. */
const MISS_REFRESH_MS = 1_000;

/** By what an executor is told from what it was: of that, a verdict is out of date. */
const listedAs = (executor: ExecutorToCheck) =>
  JSON.stringify([
    ...[executor.executor_ip_address, executor.executor_ip_port, executor.miner_hotkey],
    ...[executor.gpu_type, executor.gpu_count],
    ...[executor.collateral_deposited, executor.provider_banned ?? null],
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

  async function read(): Promise<void> {
    const list = await central.listExecutors();
    for (const executor of list) {
      const before = known.get(executor.id);
      if (before !== undefined && listedAs(before) !== listedAs(executor)) changed.add(executor.id);
    }
    known = new Map(list.map((executor) => [executor.id, executor]));
    refreshedAtMs = clock.monotonicMs();
  }

  /** One request at a time; callers meanwhile share it. */
  function refresh(): Promise<void> {
    refreshing ??= read().finally(() => {
      refreshing = null;
    });
    return refreshing;
  }

  return {
    /** The ids of all. Reads the list anew; the last good one counts while the central API does not answer. */
    async ids(): Promise<ReadonlySet<string>> {
      try {
        await refresh();
      } catch (error) {
        if (known.size === 0) throw error;
        log.warn({ error: messageOf(error), known: known.size }, 'executors as last listed');
        // Pods may have come and gone since: nothing of them is held against a host.
        known = new Map([...known].map(([id, executor]) => [id, { ...executor, pod_ids: null }]));
      }
      return new Set(known.keys());
    },
    /** Those that were listed as something else before, since they were last taken. */
    drainChanged(): string[] {
      const taken = [...changed];
      changed = new Set();
      return taken;
    },
    /** The last list. */
    known: (): ExecutorToCheck[] => [...known.values()],
    /** Throws ApiError `node_not_found` for an executor that the central API does not list. */
    async find(id: string): Promise<ExecutorToCheck> {
      if (!known.has(id) && clock.monotonicMs() - refreshedAtMs >= MISS_REFRESH_MS) await refresh();
      const executor = known.get(id);
      if (executor === undefined) throw new ApiError('node_not_found', 'There is no such node');
      return executor;
    },
  };
}
