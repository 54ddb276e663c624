/** Fetches the image of a pod's staged generation while the present one goes on, one attempt after the other. */
import { isDeepStrictEqual } from 'node:util';
import type { PullProgress } from '#shared/api/agent/images.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { EngineHealth } from '../containers/engine/engine-health.ts';
import type { BuildProgress } from '../containers/images/build.service.ts';
import type { PodImages } from '../containers/images/pod-images.ts';
import { backoffMs } from './backoff.ts';
import type { PodRow, StagedGeneration } from './pod.store.ts';
import { type Cause, refuseStagedPatch, stagedOf } from './pod-generations.ts';
import type { PodRecords } from './pod-records.ts';
import { specOf } from './pod-row.ts';
import { failureOf } from './step-failure.ts';

export type PreparationPorts = {
  records: PodRecords;
  images: PodImages;
  health: EngineHealth;
  clock: Clock;
  random: Random;
  log: Log;
  onPull(podId: string, progress: PullProgress | null): void;
};

/** Pulls in a row that failed for a reason that may pass, before the change is given up. */
export const MAX_PREPARE_ATTEMPTS = 6;
/** How soon to try again what failed for no reason of the image's. */
const PAUSE_MS = 1_000;

type Running = { generation: number; abort: AbortController; done: Promise<void> };
type Verdict = 'over' | 'again' | 'engine_away';

/** `onEnd` is called after each preparation, however it ended; whether there is another one is the caller's to see. */
export function createPreparation(podId: string, deps: PreparationPorts, onEnd: () => void) {
  const { records, images, clock, random, log } = deps;
  let running: Running | null = null;

  /** Null when the staged generation is another one by now, or none. */
  function write(
    generation: number,
    decide: (staged: StagedGeneration) => Partial<PodRow>,
  ): PodRow | null {
    return records.change(podId, (row) => {
      const staged = stagedOf(row);
      const isPresent = staged?.generation === generation && row.desired === 'running';
      return isPresent ? decide(staged) : null;
    });
  }

  function refuse(generation: number, cause: Cause): Verdict {
    log.warn({ pod_id: podId, generation, reason: cause.reason }, 'a change was given up');
    write(generation, (staged) => refuseStagedPatch(staged, cause));
    return 'over';
  }

  function found(generation: number, image_id: string, image_digest: string | null): Verdict {
    const image = { image_id, image_digest, attempts: 0, reason: null, message: '' };
    write(generation, (staged) => ({ staged_json: JSON.stringify({ ...staged, ...image }) }));
    return 'over';
  }

  /** A change that leaves the image alone does not depend on its registry. */
  function sameImage(staged: StagedGeneration): Pick<PodRow, 'image_id' | 'image_digest'> | null {
    const row = records.get(podId);
    const wanted = specOf(staged).image;
    const isSame = row !== null && isDeepStrictEqual(specOf(row).image, wanted);
    return isSame ? row : null;
  }

  function fail(staged: StagedGeneration, error: unknown): Verdict {
    const failure = failureOf('pull', error);
    const { generation } = staged;
    const present = failure.kind === 'engine_away' ? null : sameImage(staged);
    if (present?.image_id != null) {
      return found(generation, present.image_id, present.image_digest);
    }
    switch (failure.kind) {
      case 'engine_away':
        deps.health.lost(failure.message);
        return 'engine_away';
      case 'permanent':
        return refuse(generation, failure);
      case 'retry': {
        const attempts = staged.attempts + 1;
        if (attempts >= MAX_PREPARE_ATTEMPTS) return refuse(generation, failure);
        const { reason, message } = failure;
        const written = write(generation, (now) => ({
          staged_json: JSON.stringify({ ...now, attempts, reason, message }),
        }));
        return written === null ? 'over' : 'again';
      }
      default:
        return refuse(generation, { reason: 'Internal', message: failure.message });
    }
  }

  async function attempt(staged: StagedGeneration, signal: AbortSignal): Promise<Verdict> {
    const { generation } = staged;
    const wanted = { podId, generation, spec: specOf(staged), digest: null };
    const onProgress = (progress: BuildProgress) =>
      deps.onPull(podId, progress === 'building' ? null : progress);
    try {
      const ready = await images.ensure(wanted, onProgress, signal);
      return found(staged.generation, ready.imageId, ready.digest);
    } catch (error) {
      return signal.aborted ? 'over' : fail(staged, error);
    } finally {
      deps.onPull(podId, null);
    }
  }

  async function prepare(generation: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const row = records.get(podId);
      const staged = row === null ? null : stagedOf(row);
      if (staged?.generation !== generation) return;
      const verdict = await attempt(staged, signal);
      if (verdict === 'over') return;
      const pauseMs = verdict === 'again' ? backoffMs(staged.attempts + 1, random) : PAUSE_MS;
      await pause(pauseMs, signal);
    }
  }

  const pause = (ms: number, signal: AbortSignal) => clock.sleep(ms, signal).catch(() => undefined);

  function begin(generation: number): void {
    const abort = new AbortController();
    const done = prepare(generation, abort.signal)
      .catch((error: unknown) => {
        log.error(
          { pod_id: podId, detail: messageOf(error) },
          'the preparation of a change failed',
        );
        return pause(PAUSE_MS, abort.signal);
      })
      .finally(() => {
        running = null;
        onEnd();
      });
    running = { generation, abort, done };
  }

  return {
    /** Begins, goes on with or ends a preparation, as the row wants it. */
    follow(row: PodRow): void {
      const staged = row.desired === 'running' ? stagedOf(row) : null;
      if (running !== null) {
        if (running.generation !== staged?.generation) running.abort.abort();
      } else if (staged !== null && staged.image_id === null) {
        begin(staged.generation);
      }
    },
    async stop(): Promise<void> {
      running?.abort.abort();
      await running?.done;
    },
  };
}
