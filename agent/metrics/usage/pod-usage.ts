/** What containers use: from the kernel's files, and where those cannot be seen, from the engine. */

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
import type { FilePlace, FileUsage } from './kernel-usage.ts';

/** What concerns the engine; anything else one container alone. */
const SILENCE: readonly EngineErrorKind[] = ['unavailable', 'deadline'];
/** An engine takes up to a second for an answer. */
const QUESTIONS_AT_A_TIME = 8;
/** How long the engine is asked before the files of a container are looked for again. */
export const LOOK_AGAIN_MS = 10 * 60_000;

export type PodUsage = ReturnType<typeof createPodUsage>;

/** Remembers where the files of running containers are: one question to the engine for each start of a container. */
export function createPodUsage(deps: {
  clock: Clock;
  log: Log;
  engine: Pick<ContainerEngine, 'inspectContainer' | 'containerUsage'>;
  files: FileUsage;
}) {
  const { clock, log, engine, files } = deps;
  const places = new Map<string, FilePlace>();
  /** Until when the engine is asked for a container. */
  const hiddenUntilMs = new Map<string, number>();
  const questions = createSemaphore(QUESTIONS_AT_A_TIME);
  let isTold = false;

  function fromFiles(place: FilePlace): ContainerUsage | null {
    try {
      return files.read(place);
    } catch (error) {
      log.debug({ detail: messageOf(error) }, 'the files of a container cannot be read');
      return null;
    }
  }

  function tell(detail: string): void {
    if (isTold) return;
    isTold = true;
    const words =
      'what pods use is asked of the engine, one request per pod: it cannot be read here';
    log.warn({ detail }, words);
  }

  /** Rejects with EngineError. */
  async function byEngine(id: string): Promise<ContainerUsage | null> {
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
      // One that has just ended has no files either.
      if (usage === null) return null;
      hiddenUntilMs.set(id, clock.monotonicMs() + LOOK_AGAIN_MS);
      tell(messageOf(error));
      return usage;
    }
  }

  async function askFor(
    ids: readonly string[],
    usages: Map<string, ContainerUsage | null>,
  ): Promise<void> {
    let engineAnswers = true;
    const ask = async (id: string) => {
      // An engine that does not answer is not waited for again and again.
      if (!engineAnswers) return;
      try {
        usages.set(id, await byEngine(id));
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        if (SILENCE.includes(error.kind)) engineAnswers = false;
      }
    };
    await Promise.all(ids.map((id) => questions.run(() => ask(id))));
  }

  return {
    /** Of each container, null where nobody tells. Never rejects because of engine or kernel. */
    async read(ids: readonly string[]): Promise<ReadonlyMap<string, ContainerUsage | null>> {
      const asked = new Set(ids);
      for (const known of [places, hiddenUntilMs]) {
        for (const id of known.keys()) if (!asked.has(id)) known.delete(id);
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
      await askFor(
        ids.filter((id) => usages.get(id) === null),
        usages,
      );
      return usages;
    },
  };
}
