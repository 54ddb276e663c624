/** Fetches the image of a pod's staged generation while the present generation runs. */
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

export type StagedImagePorts = {
  records: PodRecords;
  images: PodImages;
  health: EngineHealth;
  clock: Clock;
  random: Random;
  log: Log;
  onPull(podId: string, progress: PullProgress | null): void;
};

/** Consecutive transient failures after which the change is refused. */
export const MAX_PULL_ATTEMPTS = 6;
/** Delay before a retry after a failure that the image did not cause. */
const PAUSE_MS = 1_000;

type Running = { generation: number; abort: AbortController; done: Promise<void> };
type Result = 'done' | 'retry' | 'engine_away';

/** Calls `onEnd` after each fetch, whether it succeeded or failed. */
export function createStagedImage(podId: string, deps: StagedImagePorts, onEnd: () => void) {
  const { records, images, clock, random, log } = deps;
  let running: Running | null = null;

  /** Returns null if this generation is not staged any more. */
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

  function refuse(generation: number, cause: Cause): Result {
    log.warn({ pod_id: podId, generation, reason: cause.reason }, 'change refused');
    write(generation, (staged) => refuseStagedPatch(staged, cause));
    return 'done';
  }

  function found(generation: number, image_id: string, image_digest: string | null): Result {
    const image = { image_id, image_digest, attempts: 0, reason: null, message: '' };
    write(generation, (staged) => ({ staged_json: JSON.stringify({ ...staged, ...image }) }));
    return 'done';
  }

  /**
   * Image fields of the present generation if the staged one has the same image, so that the change does not depend on
   * the registry.
   */
  function sameImage(staged: StagedGeneration): Pick<PodRow, 'image_id' | 'image_digest'> | null {
    const row = records.get(podId);
    const wanted = specOf(staged).image;
    const isSame = row !== null && isDeepStrictEqual(specOf(row).image, wanted);
    return isSame ? row : null;
  }

  function fail(staged: StagedGeneration, error: unknown): Result {
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
        if (attempts >= MAX_PULL_ATTEMPTS) return refuse(generation, failure);
        const { reason, message } = failure;
        const written = write(generation, (now) => ({
          staged_json: JSON.stringify({ ...now, attempts, reason, message }),
        }));
        return written === null ? 'done' : 'retry';
      }
      default:
        return refuse(generation, { reason: 'Internal', message: failure.message });
    }
  }

  async function attempt(staged: StagedGeneration, signal: AbortSignal): Promise<Result> {
    const { generation } = staged;
    const wanted = { podId, generation, spec: specOf(staged), digest: null };
    const onProgress = (progress: BuildProgress) =>
      deps.onPull(podId, progress === 'building' ? null : progress);
    try {
      const ready = await images.ensure(wanted, onProgress, signal);
      return found(staged.generation, ready.imageId, ready.digest);
    } catch (error) {
      return signal.aborted ? 'done' : fail(staged, error);
    } finally {
      deps.onPull(podId, null);
    }
  }

  async function prepare(generation: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const row = records.get(podId);
      const staged = row === null ? null : stagedOf(row);
      if (staged?.generation !== generation) return;
      const result = await attempt(staged, signal);
      if (result === 'done') return;
      const pauseMs = result === 'retry' ? backoffMs(staged.attempts + 1, random) : PAUSE_MS;
      await pause(pauseMs, signal);
    }
  }

  const pause = (ms: number, signal: AbortSignal) => clock.sleep(ms, signal).catch(() => undefined);

  function begin(generation: number): void {
    const abort = new AbortController();
    const done = prepare(generation, abort.signal)
      .catch((error: unknown) => {
        log.error({ pod_id: podId, detail: messageOf(error) }, 'fetching a staged image failed');
        return pause(PAUSE_MS, abort.signal);
      })
      .finally(() => {
        running = null;
        onEnd();
      });
    running = { generation, abort, done };
  }

  return {
    /** Starts or aborts the fetch so that it matches the row. */
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
