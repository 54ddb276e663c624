/** Measures the bandwidth of executors' lines, a few at a time, and provides the results to the checks. */
import type { SignedConnect } from '#shared/api/agent/connect.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Heartbeat } from '#shared/runtime/liveness.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { LineFacts } from '../../checks/measured.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import type { HostLocks } from '../host-locks.ts';
import { betterOf, isDue, needsSecondSample, nextLine, unmeasuredLine } from './line.state.ts';
import { fastestOfOthers, findLine, listLines, markReported, saveLine } from './line.store.ts';
import { type LineSample, type LineSize, measureLine } from './measure-line.ts';

/**
 * Maximum number of measurements in parallel. Parallel measurements share the validator's line, so more would measure
 * that line.
 */
const MAX_PARALLEL = 2;
/** Time for which a measurement of another executor proves the speed of the validator's line. */
const PROVEN_MS = 24 * 3_600_000;

export type Lines = ReturnType<typeof createLines>;

export type LineOptions = {
  store: EvidenceStore;
  clock: Clock;
  random: Random;
  log: Log;
  connectTo(executor: ExecutorToCheck): SignedConnect;
  /**
   * Resolves with true if this process holds the lease on line measurements. Processes that share the store share the
   * lease.
   */
  holdsLease(): Promise<boolean>;
  /** A locked host is skipped: its agent would refuse the measurement. */
  hosts: Pick<HostLocks, 'run'>;
  /** Null disables measurements. */
  size: LineSize | null;
  /** Milliseconds between two measurements of an executor. */
  intervalMs: number;
  /** Records progress after each attempt, because a pass over many lines is long. */
  beatAfter: Heartbeat['beatAfter'];
  /** A first sample below this is repeated. */
  lowKbit: number;
};

export function createLines(options: LineOptions) {
  const { store, clock, random, log, size, lowKbit } = options;
  const limit = createSemaphore(MAX_PARALLEL);

  async function measure(
    executor: ExecutorToCheck,
    size: LineSize,
    signal: AbortSignal,
  ): Promise<void> {
    const before = (await findLine(store, executor.id)) ?? unmeasuredLine(executor.id);
    // Another process may have measured the line meanwhile.
    if (!isDue(before, clock.now(), options.intervalMs) || !(await options.holdsLease())) return;
    const deps = { connect: options.connectTo(executor), clock, random, size, signal };
    let sample: LineSample = await measureLine(deps, executor.id);
    if (needsSecondSample(before, sample, lowKbit)) {
      sample = betterOf(sample, await measureLine(deps, executor.id));
    }
    signal.throwIfAborted();
    await saveLine(store, nextLine(before, sample, clock.now()));
    log.info({ executor: executor.id, ...sample }, 'line measured');
  }

  return {
    /** Measures all due executors that are not rented, the least recently tried first. */
    async runOnce(executors: readonly ExecutorToCheck[], stopping: AbortSignal): Promise<void> {
      if (size === null) return;
      const known = await listLines(store);
      const triedMs = ({ id }: ExecutorToCheck) => known.get(id)?.tried_ms ?? 0;
      const due = executors
        .filter(({ id, rented }) => {
          const line = known.get(id) ?? unmeasuredLine(id);
          return !rented && isDue(line, clock.now(), options.intervalMs);
        })
        .toSorted((a, b) => triedMs(a) - triedMs(b));
      const whenFree = (executor: ExecutorToCheck) =>
        options.hosts.run(executor.id, 0, () => measure(executor, size, stopping));
      const passes = due.map((executor) =>
        limit
          .run(() => options.beatAfter(() => whenFree(executor)), stopping)
          .catch((error: unknown) => {
            if (stopping.aborted) return;
            log.warn({ executor: executor.id, error: messageOf(error) }, 'line measurement failed');
          }),
      );
      await Promise.all(passes);
    },

    /** Line facts for the checks; null if no measurement was tried. */
    async facts(executorId: string): Promise<LineFacts | null> {
      const line = await findLine(store, executorId);
      if (line === undefined) return null;
      const others = await fastestOfOthers(store, executorId, clock.now() - PROVEN_MS);
      const { executor_id: _, tried_ms: triedMs, told_ms: toldMs, ...figures } = line;
      // For a line that was never measured: the time of the last attempt.
      const knownMs = line.measured_ms ?? triedMs;
      const isRepeated = toldMs === knownMs;
      if (!isRepeated) await markReported(store, executorId, knownMs);
      return {
        ...figures,
        others_down_kbit: others.down_kbit,
        others_up_kbit: others.up_kbit,
        repeated: isRepeated,
      };
    },
  };
}
