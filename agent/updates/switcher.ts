/**
 * The switcher's half of an update: stops the old version, starts the new one, monitors it, and commits it or rolls
 * back. The process may be killed at any point and is then started again. Each step checks which work is already done.
 * A decision to roll back is stored before the rollback begins.
 */

import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Replacement } from './installation.ts';
import {
  backOffMs,
  type PodMark,
  type RollbackPoint,
  SWITCHER_STATES,
  type Target,
  transition,
} from './update.state.ts';
import type { StoreCopy, UpdateStore } from './update.store.ts';

export type SwitcherOptions = {
  clock: Clock;
  log: Log;
  /** Opens the store for one access, because a rollback may replace its file. */
  withStore<T>(work: (store: UpdateStore) => T): T;
  replacement: Replacement;
  storeCopy: StoreCopy;
  /** Returns true if the agent at `host` is ready. Never rejects. */
  isReady(host: string): Promise<boolean>;
  /** Returns the ids of the pods that were lost. */
  lostPods(pods: readonly PodMark[]): Promise<readonly string[]>;
  /** Time for which the new version has to stay ready. */
  probationMs: number;
  /** Time limit for the new version to become ready. */
  readyWithinMs: number;
};

type Failure = { reason: string; message: string };

const POLL_MS = 1_000;
/** Consecutive polls that may report the version as unready after it was ready. */
const MAX_MISSES = 5;

/** Resolves when the update is committed or rolled back. */
export async function runSwitcher(options: SwitcherOptions): Promise<void> {
  const { clock, log, withStore } = options;
  for (;;) {
    const row = withStore((store) => store.get());
    const { state, target, passage: point } = row;
    if (!SWITCHER_STATES.includes(state) || target === null || point === null) return;
    const failure = point.back ?? (await advance(options, { state, target, point }));
    if (failure === null) continue;
    if (point.back === null) {
      withStore((store) => store.put({ ...store.get(), passage: { ...point, back: failure } }));
    }
    await rollBack(options, { target, point });
    // The old version already runs, but takes the row over again only after this write.
    const attempts = row.attempts + 1;
    const sinceMs = clock.now();
    withStore((store) =>
      store.put(
        transition(store.get(), 'ROLLED_BACK', {
          ...failure,
          since_ms: sinceMs,
          attempts,
          passage: null,
          denied_until_ms: sinceMs + backOffMs(attempts),
        }),
      ),
    );
    log.warn({ ...failure, target }, 'update rolled back');
  }
}

type Work = { state: string; target: Target; point: RollbackPoint };

/** Moves to the next state and returns null, or returns why the update has to be rolled back. */
async function advance(options: SwitcherOptions, work: Work): Promise<Failure | null> {
  const { clock, log, withStore, replacement, storeCopy } = options;
  const { target, point } = work;
  if (work.state === 'SWITCHING') {
    const refusal = await replacement.refusal(target, point);
    if (refusal !== null) return { reason: 'NEW_VERSION_REFUSED', message: refusal };
    await replacement.stopOld(target, point);
    storeCopy.make(target);
    try {
      await replacement.startNew(target, point);
    } catch (error) {
      return { reason: 'NEW_VERSION_NOT_STARTED', message: messageOf(error) };
    }
    withStore((store) =>
      store.put(transition(store.get(), 'PROBATION', { since_ms: clock.now() })),
    );
    return null;
  }
  const failure = await watch(options, work);
  if (failure !== null) return failure;
  await replacement.cleanUp(target, point);
  const change = { since_ms: clock.now(), attempts: 0, denied_until_ms: 0, passage: null };
  withStore((store) => store.put(transition(store.get(), 'COMMITTED', change)));
  storeCopy.drop(target);
  log.info({ target }, 'update committed');
  return null;
}

/** Resolves with null once the new version has been ready for the whole probation, else with the failure. */
async function watch(options: SwitcherOptions, { target, point }: Work): Promise<Failure | null> {
  const { clock, replacement, isReady } = options;
  const giveUpMs = clock.monotonicMs() + options.readyWithinMs;
  const failWith = async (reason: string): Promise<Failure> => {
    return { reason, message: await replacement.lastLogLines(target) };
  };
  let readyMs: number | null = null;
  let misses = 0;
  for (;;) {
    const status = await replacement.status(target);
    if (!status.isAlive) return failWith('NEW_VERSION_ENDED');
    const nowMs = clock.monotonicMs();
    if (status.host !== null && (await isReady(status.host))) {
      misses = 0;
      const lost = await options.lostPods(point.pods);
      if (lost.length > 0) return { reason: 'PODS_LOST', message: `gone: ${lost.join(', ')}` };
      readyMs ??= nowMs;
      if (nowMs - readyMs >= options.probationMs) return null;
    } else if (readyMs === null && nowMs >= giveUpMs) {
      return failWith('NEW_VERSION_NOT_READY');
    } else if (readyMs !== null) {
      misses += 1;
      if (misses > MAX_MISSES) return failWith('NEW_VERSION_UNHEALTHY');
    }
    await clock.sleep(POLL_MS);
  }
}

/**
 * Starts the old version, with a store that it can read. If another version was installed since the switch, leaves that
 * version and the store unchanged.
 */
async function rollBack(
  { replacement, storeCopy }: SwitcherOptions,
  { target, point }: Pick<Work, 'target' | 'point'>,
): Promise<void> {
  if (!(await replacement.removeNew(target, point))) return storeCopy.drop(target);
  storeCopy.restoreIfNewer(target);
  await replacement.startOld(point);
}
