/**
 * Limits the rate at which clients start processes in a pod, and how many start at the same time. The engine needs up to
 * a tenth of a second of the host's processor time for each start, outside the pod's limits, and much more while many
 * start at once: without limits one renter could use all cores of the host and delay the pods of others.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { ExecProcess } from '../../containers/engine/exec.ts';

export const START_PACE = { burst: 10, perSecond: 5 };
/** Processes of a pod that start at the same time. */
const MAX_STARTING = 3;
/** Interval and number of questions whether a process runs. After the last, it counts as running. */
const RUNS_POLL_MS = 50;
const RUNS_POLLS = 60;

const SECOND_MS = 1_000;

/** `credit` is the number of starts that need not wait, at the monotonic time `atMs`. */
type Pace = {
  credit: number;
  atMs: number;
  waiting: number;
  turns: ReturnType<typeof createSemaphore>;
};

type StartedProcess = Pick<ExecProcess, 'inspect'>;

export type StartPace = ReturnType<typeof createStartPace>;

export function createStartPace(clock: Clock, { burst, perSecond } = START_PACE) {
  const paces = new Map<string, Pace>();

  function creditOf({ credit, atMs }: Pace): number {
    return Math.min(burst, credit + ((clock.monotonicMs() - atMs) / SECOND_MS) * perSecond);
  }

  function paceOf(containerId: string): Pace {
    for (const [id, pace] of paces) {
      if (pace.waiting === 0 && creditOf(pace) === burst) paces.delete(id);
    }
    const fresh = {
      credit: burst,
      atMs: clock.monotonicMs(),
      waiting: 0,
      turns: createSemaphore(MAX_STARTING),
    };
    const pace = paces.get(containerId) ?? fresh;
    paces.set(containerId, pace);
    return pace;
  }

  async function take(pace: Pace, signal: AbortSignal): Promise<void> {
    for (let credit = creditOf(pace); credit < 1; credit = creditOf(pace)) {
      await clock.sleep(Math.ceil(((1 - credit) / perSecond) * SECOND_MS), signal);
    }
    pace.credit = creditOf(pace) - 1;
    pace.atMs = clock.monotonicMs();
  }

  /** Resolves when the process runs or has ended; the engine reports that some time after its start. */
  async function untilRuns(process: StartedProcess): Promise<void> {
    for (let poll = 0; poll < RUNS_POLLS; poll += 1) {
      const { pid, exitCode } = await process.inspect();
      if (pid > 0 || exitCode !== null) return;
      await clock.sleep(RUNS_POLL_MS);
    }
  }

  return {
    /**
     * Starts a process in the container with `begin` when it is its turn, in the order of the calls. Rejects as `begin`
     * does, and when the signal aborts before. Callers limit how many of them wait.
     */
    start<P extends StartedProcess>(
      containerId: string,
      signal: AbortSignal,
      begin: () => Promise<P>,
    ): Promise<P> {
      const { promise, resolve, reject } = Promise.withResolvers<P>();
      const pace = paceOf(containerId);
      pace.waiting += 1;
      const turn = pace.turns.run(async () => {
        await take(pace, signal);
        const process = await begin();
        resolve(process);
        await untilRuns(process);
      }, signal);
      // After `resolve` this has no effect.
      void turn.catch(reject).finally(() => {
        pace.waiting -= 1;
      });
      return promise;
    },
  };
}
