/** Tells others what is in the outbox: each lane in order, at least once (validator reference 10). */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Ledger, LetterKind, OutboxRow } from '../ledger.tables.ts';
import { LONGEST_PAUSE_MS, MAX_ATTEMPTS, type Outcome, pauseAfter } from './outbox.state.ts';
import { dueLetters, parkLetter, postponeLetter, removeLetter } from './outbox.store.ts';

const JITTER_STEPS = 1_000;
/** Lanes that are told of at once. */
const TOGETHER = 8;

/** How letters of one kind are told. */
export type Delivery = {
  /** Never rejects for what the other side does or does not say. */
  deliver(letter: OutboxRow): Promise<Outcome>;
  /** It was given up. */
  onParked(letter: OutboxRow): Promise<void>;
};

export type OutboxOptions = {
  ledger: Ledger;
  clock: Clock;
  random: Random;
  log: Log;
  deliveries: Readonly<Record<LetterKind, Delivery>>;
};

export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(options: OutboxOptions) {
  const { ledger, clock, random, log, deliveries } = options;
  let running: Promise<void> | null = null;
  let isWanted = false;

  async function tell(letter: OutboxRow): Promise<Outcome['state']> {
    const outcome = await deliveries[letter.kind].deliver(letter);
    if (outcome.state === 'taken') {
      await removeLetter(ledger, letter.seq);
      return 'taken';
    }
    const { seq, kind, subject } = letter;
    const attempts = letter.attempts + 1;
    const { reason } = outcome;
    const about = { kind, subject, attempts, reason };
    if (outcome.state === 'refused' || attempts >= MAX_ATTEMPTS) {
      await parkLetter(ledger, { seq, kind, attempts }, { parkedMs: clock.now(), reason });
      await deliveries[kind].onParked(letter);
      log.error(about, 'given up: it has to be looked at');
      return 'refused';
    }
    const pauseMs = pauseAfter(attempts, random.int(JITTER_STEPS) / JITTER_STEPS);
    await postponeLetter(ledger, { seq, attempts }, { nextMs: clock.now() + pauseMs, reason });
    log.warn(about, 'not told yet');
    return 'unavailable';
  }

  /** Ends when nothing is due, or nobody listens: what is left has its time. */
  async function pass(): Promise<void> {
    for (;;) {
      const nowMs = clock.now();
      // Longer waits are not ours: the clock was set back.
      const times = { nowMs, latestMs: nowMs + LONGEST_PAUSE_MS };
      const due = await dueLetters(ledger, times, TOGETHER);
      if (due.length === 0) return;
      const states = await Promise.all(due.map(tell));
      if (states.every((state) => state === 'unavailable')) return;
    }
  }

  async function passWhileWanted(): Promise<void> {
    while (isWanted) {
      isWanted = false;
      await pass();
    }
  }

  return {
    /**
     * Tells what is due; what has to wait keeps its own lane waiting, what is given up keeps nobody. Whoever comes
     * while it is at work waits with the others until all is told that was there by then.
     */
    runOnce(): Promise<void> {
      isWanted = true;
      running ??= passWhileWanted().finally(() => {
        running = null;
      });
      return running;
    },
  };
}
