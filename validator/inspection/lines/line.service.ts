/** Measures the lines of executors in turns, and tells checks how fast they have been. */
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

/** They share the validator's own line: more would measure that instead. */
const MAX_PARALLEL = 2;
/** How long what others came to says what the validator's own line can do. */
const PROVEN_MS = 24 * 3_600_000;

export type Lines = ReturnType<typeof createLines>;

export type LineOptions = {
  store: EvidenceStore;
  clock: Clock;
  random: Random;
  log: Log;
  connectTo(executor: ExecutorToCheck): SignedConnect;
  /** Whether lines are for this process to measure, of those that share the ledger. */
  holdsLease(): Promise<boolean>;
  /** One that is being tried is measured another time: its agent would refuse. */
  hosts: Pick<HostLocks, 'run'>;
  /** Null: nothing is measured. */
  size: LineSize | null;
  /** From one measurement of an executor to the next. */
  intervalMs: number;
  /** A pass over many lines is long: each that was tried shows that it goes on. */
  beatAfter: Heartbeat['beatAfter'];
  /** What is low, for a first sample to be taken twice. */
  lowKbit: number;
};

export function createLines(options: LineOptions) {
  const { store, clock, random, log, size, lowKbit } = options;
  const places = createSemaphore(MAX_PARALLEL);

  async function measure(
    executor: ExecutorToCheck,
    asked: LineSize,
    signal: AbortSignal,
  ): Promise<void> {
    const before = (await findLine(store, executor.id)) ?? unmeasuredLine(executor.id);
    // Another process may have been faster.
    if (!isDue(before, clock.now(), options.intervalMs) || !(await options.holdsLease())) return;
    const deps = { connect: options.connectTo(executor), clock, random, size: asked, signal };
    let sample: LineSample = await measureLine(deps, executor.id);
    if (needsSecondSample(before, sample, lowKbit)) {
      sample = betterOf(sample, await measureLine(deps, executor.id));
    }
    signal.throwIfAborted();
    await saveLine(store, nextLine(before, sample, clock.now()));
    log.info({ executor: executor.id, ...sample }, 'line measured');
  }

  return {
    /** Measures those that are due and not rented, some at a time, who waits longest first. */
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
      const alone = (executor: ExecutorToCheck, asked: LineSize) =>
        options.hosts.run(executor.id, 0, () => measure(executor, asked, stopping));
      const passes = due.map((executor) =>
        places
          .run(() => options.beatAfter(() => alone(executor, size)), stopping)
          .catch((error: unknown) => {
            if (stopping.aborted) return;
            log.warn({ executor: executor.id, error: messageOf(error) }, 'line not measured');
          }),
      );
      await Promise.all(passes);
    },

    /** What a look at the executor goes by; null where it was never tried. */
    async facts(executorId: string): Promise<LineFacts | null> {
      const line = await findLine(store, executorId);
      if (line === undefined) return null;
      const others = await fastestOfOthers(store, executorId, clock.now() - PROVEN_MS);
      const { executor_id: _, tried_ms: triedMs, told_ms: toldMs, ...figures } = line;
      // Of a line that was never measured, when that was tried.
      const knownMs = line.measured_ms ?? triedMs;
      const isRepeated = toldMs === knownMs;
      if (!isRepeated) await markReported(store, executorId, knownMs);
      return {
        ...figures,
        ...{ others_down_kbit: others.down_kbit, others_up_kbit: others.up_kbit },
        repeated: isRepeated,
      };
    },
  };
}
