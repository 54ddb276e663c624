/** Resource use of containers: from the kernel's files, or from the engine where they are not accessible. */
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import {
  type ContainerEngine,
  type ContainerUsage,
  EngineError,
  type EngineErrorKind,
} from '../../containers/engine/engine.ts';
import type { FileUsage, UsageFiles } from './kernel-usage.ts';

/** Errors of the engine itself; others concern a single container. */
const ENGINE_ERRORS: readonly EngineErrorKind[] = ['unavailable', 'deadline'];
/** Concurrent requests; an engine takes up to a second for an answer. */
const MAX_ENGINE_REQUESTS = 8;
/** Time for which the engine is queried before the files of a container are searched again. */
export const RETRY_FILES_MS = 10 * 60_000;

export type PodUsage = ReturnType<typeof createPodUsage>;

/** Caches the file paths of running containers: one request to the engine for each start of a container. */
export function createPodUsage(deps: {
  clock: Clock;
  log: Log;
  engine: Pick<ContainerEngine, 'inspectContainer' | 'containerUsage'>;
  files: FileUsage;
}) {
  const { clock, log, engine, files } = deps;
  const places = new Map<string, UsageFiles>();
  /** Until when the engine is queried for a container. */
  const hiddenUntilMs = new Map<string, number>();
  const requests = createSemaphore(MAX_ENGINE_REQUESTS);
  let hasWarned = false;

  function fromFiles(place: UsageFiles): ContainerUsage | null {
    try {
      return files.read(place);
    } catch (error) {
      log.debug({ detail: messageOf(error) }, 'usage files of a container cannot be read');
      return null;
    }
  }

  function warnOnce(detail: string): void {
    if (hasWarned) return;
    hasWarned = true;
    const message = 'usage files are not accessible; querying the engine, one request per pod';
    log.warn({ detail }, message);
  }

  /** Rejects with EngineError. */
  async function fromEngine(id: string): Promise<ContainerUsage | null> {
    if ((hiddenUntilMs.get(id) ?? 0) > clock.monotonicMs()) return engine.containerUsage(id);
    hiddenUntilMs.delete(id);
    const state = await engine.inspectContainer(id);
    if (state === null) return null;
    try {
      const place = files.locate(id, state.pid);
      const usage = files.read(place);
      places.set(id, place);
      return usage;
    } catch (error) {
      const usage = await engine.containerUsage(id);
      // A container that has just ended has no files either.
      if (usage === null) return null;
      hiddenUntilMs.set(id, clock.monotonicMs() + RETRY_FILES_MS);
      warnOnce(messageOf(error));
      return usage;
    }
  }

  async function queryEngine(
    ids: readonly string[],
    usages: Map<string, ContainerUsage | null>,
  ): Promise<void> {
    let engineAnswers = true;
    const query = async (id: string) => {
      // Skips the remaining containers once the engine does not answer.
      if (!engineAnswers) return;
      try {
        usages.set(id, await fromEngine(id));
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        if (ENGINE_ERRORS.includes(error.kind)) engineAnswers = false;
      }
    };
    await Promise.all(ids.map((id) => requests.run(() => query(id))));
  }

  return {
    /** Returns the use of each container, null if unknown. Never rejects because of engine or kernel. */
    async read(ids: readonly string[]): Promise<ReadonlyMap<string, ContainerUsage | null>> {
      const requested = new Set(ids);
      for (const known of [places, hiddenUntilMs]) {
        for (const id of known.keys()) if (!requested.has(id)) known.delete(id);
      }
      const breathe = createEventLoopYield(clock);
      const usages = new Map<string, ContainerUsage | null>();
      for (const id of ids) {
        await breathe();
        const place = places.get(id);
        const usage = place === undefined ? null : fromFiles(place);
        if (usage === null) places.delete(id);
        usages.set(id, usage);
      }
      await queryEngine(
        ids.filter((id) => usages.get(id) === null),
        usages,
      );
      return usages;
    },
  };
}
