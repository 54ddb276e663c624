/**
 * The switcher's half of an update: stops the old version, starts the new one, watches it, and keeps it or goes back
 * (validator reference 4.3). Whatever it does may be cut off by kill -9 anywhere and is begun again: each step looks at
 * what is there, and a way back that was decided on is in the row before it begins.
 */

import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Replacement } from './installation.ts';
import type { StoreCopy } from './store-copy.ts';
import {
  backOffMs,
  moved,
  type Passage,
  type PodMark,
  SWITCHERS,
  type Target,
} from './update.state.ts';
import type { UpdateStore } from './update.store.ts';

export type SwitchOptions = {
  clock: Clock;
  log: Log;
  /** The row, wherever it lies just then. */
  withStore<T>(work: (store: UpdateStore) => T): T;
  replacement: Replacement;
  storeCopy: StoreCopy;
  /** Whether the agent at this host is ready to work; never rejects. */
  isReady(host: string): Promise<boolean>;
  /** Which of them are gone though nobody asked for that. */
  lostPods(pods: readonly PodMark[]): Promise<readonly string[]>;
  probationMs: number;
  /** How long the new version may take until it is ready. */
  readyWithinMs: number;
};

type Way = { reason: string; message: string };

const LOOK_MS = 1_000;
/** Looks in a row that find it not ready any more. */
const MAX_MISSES = 5;

/** Resolves when the row rests. */
export async function runSwitch(options: SwitchOptions): Promise<void> {
  const { clock, log, withStore } = options;
  for (;;) {
    const row = withStore((store) => store.get());
    const { state, target, passage } = row;
    if (!SWITCHERS.includes(state) || target === null || passage === null) return;
    const way = passage.back ?? (await advance(options, { state, target, passage }));
    if (way === null) continue;
    if (passage.back === null) {
      withStore((store) => store.put({ ...store.get(), passage: { ...passage, back: way } }));
    }
    await goBack(options, { target, passage });
    // The old version sees a row that is still ours, and waits.
    const attempts = row.attempts + 1;
    const sinceMs = clock.now();
    const change = { ...way, since_ms: sinceMs, attempts, passage: null };
    const deniedUntilMs = sinceMs + backOffMs(attempts);
    withStore((store) =>
      store.put(moved(store.get(), 'ROLLED_BACK', { ...change, denied_until_ms: deniedUntilMs })),
    );
    log.warn({ ...way, target }, 'update rolled back');
  }
}

type Work = { state: string; target: Target; passage: Passage };

/** One state further; or why it has to go back. */
async function advance(options: SwitchOptions, work: Work): Promise<Way | null> {
  const { clock, log, withStore, replacement, storeCopy } = options;
  const { target, passage } = work;
  if (work.state === 'SWITCHING') {
    const refusal = await replacement.refusal(target, passage);
    if (refusal !== null) return { reason: 'NEW_VERSION_REFUSED', message: refusal };
    await replacement.stopOld(target, passage);
    storeCopy.make(target);
    try {
      await replacement.startNew(target, passage);
    } catch (error) {
      return { reason: 'NEW_VERSION_NOT_STARTED', message: messageOf(error) };
    }
    withStore((store) => store.put(moved(store.get(), 'PROBATION', { since_ms: clock.now() })));
    return null;
  }
  const problem = await watch(options, work);
  if (problem !== null) return problem;
  await replacement.tidy(target, passage);
  const change = { since_ms: clock.now(), attempts: 0, denied_until_ms: 0, passage: null };
  withStore((store) => store.put(moved(store.get(), 'COMMITTED', change)));
  storeCopy.drop(target);
  log.info({ target }, 'update committed');
  return null;
}

/** Null once the new version has been ready for the whole probation. */
async function watch(options: SwitchOptions, { target, passage }: Work): Promise<Way | null> {
  const { clock, replacement, isReady } = options;
  const giveUpMs = clock.monotonicMs() + options.readyWithinMs;
  let readyMs: number | null = null;
  let misses = 0;
  for (;;) {
    const look = await replacement.look(target);
    if (!look.isAlive) {
      const words = await replacement.lastWords(target);
      return { reason: 'NEW_VERSION_ENDED', message: words };
    }
    const nowMs = clock.monotonicMs();
    if (look.host !== null && (await isReady(look.host))) {
      misses = 0;
      const lost = await options.lostPods(passage.pods);
      if (lost.length > 0) return { reason: 'PODS_LOST', message: `gone: ${lost.join(', ')}` };
      readyMs ??= nowMs;
      if (nowMs - readyMs >= options.probationMs) return null;
    } else if (readyMs === null && nowMs >= giveUpMs) {
      return { reason: 'NEW_VERSION_NOT_READY', message: await replacement.lastWords(target) };
    } else if (readyMs !== null) {
      misses += 1;
      if (misses > MAX_MISSES) {
        return { reason: 'NEW_VERSION_UNHEALTHY', message: await replacement.lastWords(target) };
      }
    }
    await clock.sleep(LOOK_MS);
  }
}

/** Up to the old version running again, on a store that it can read; unless another has taken over, whose the store is. */
async function goBack(
  { replacement, storeCopy }: SwitchOptions,
  { target, passage }: Pick<Work, 'target' | 'passage'>,
): Promise<void> {
  if (!(await replacement.dropNew(target, passage))) return storeCopy.drop(target);
  storeCopy.restoreIfNewer(target);
  await replacement.startOld(passage);
}
