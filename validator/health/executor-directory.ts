/** Which executors there are and where: read from the central API, the last good list kept. */
import type { ExecutorToCheck } from '#shared/central-api/validator-routes.ts';
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { CentralClient } from '../central-client.ts';

export type ExecutorDirectory = ReturnType<typeof createExecutorDirectory>;

/** A miss reads the list again, but no more often than this: unknown ids must not become a load. */
const MISS_REFRESH_MS = 1_000;

export function createExecutorDirectory(options: { central: CentralClient; clock: Clock }) {
  const { central, clock } = options;
  let known = new Map<string, ExecutorToCheck>();
  let refreshedAtMs = Number.NEGATIVE_INFINITY;
  let refreshing: Promise<void> | null = null;

  async function read(): Promise<void> {
    const list = await central.listExecutors();
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
    /** Reads the list anew and returns it. Rejects when the central API does not answer. */
    async list(): Promise<ExecutorToCheck[]> {
      await refresh();
      return [...known.values()];
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
