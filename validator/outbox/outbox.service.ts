/** Tells others what is in the outbox, in order, at least once (validator reference 10). */
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Random } from '#shared/random.ts';
import type { Ledger, OutboxRow } from '../ledger/ledger.tables.ts';
import { LONGEST_PAUSE_MS, MAX_ATTEMPTS, type Outcome, pauseAfter } from './outbox.state.ts';
import { nextLetter, parkLetter, postponeLetter, removeLetter } from './outbox.store.ts';

const JITTER_STEPS = 1_000;

export type OutboxOptions = {
  ledger: Ledger;
  clock: Clock;
  random: Random;
  log: Log;
  /** Never rejects for what the other side does or does not say. */
  deliver(letter: OutboxRow): Promise<Outcome>;
  /** It was given up. */
  onParked(letter: OutboxRow): Promise<void>;
};

export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(options: OutboxOptions) {
  const { ledger, clock, random, log } = options;

  /** Whether the next one may be told now. */
  async function tell(letter: OutboxRow): Promise<boolean> {
    const outcome = await options.deliver(letter);
    if (outcome.state === 'taken') {
      await removeLetter(ledger, letter.seq);
      return true;
    }
    const tried = { seq: letter.seq, attempts: letter.attempts + 1 };
    const { reason } = outcome;
    const about = { kind: letter.kind, subject: letter.subject, attempts: tried.attempts, reason };
    if (outcome.state === 'refused' || tried.attempts >= MAX_ATTEMPTS) {
      await parkLetter(ledger, tried, { parkedMs: clock.now(), reason });
      await options.onParked(letter);
      log.error(about, 'given up: it has to be looked at');
      return true;
    }
    const pauseMs = pauseAfter(tried.attempts, random.int(JITTER_STEPS) / JITTER_STEPS);
    await postponeLetter(ledger, tried, { nextMs: clock.now() + pauseMs, reason });
    log.warn(about, 'not told yet');
    return false;
  }

  return {
    /** Tells what is due; one that has to wait keeps those behind it waiting, one that is given up does not. */
    async runOnce(): Promise<void> {
      for (;;) {
        const letter = await nextLetter(ledger);
        if (letter === undefined) return;
        const waitMs = letter.next_ms - clock.now();
        // Longer waits are not ours: the clock was set back.
        if (waitMs > 0 && waitMs <= LONGEST_PAUSE_MS) return;
        if (!(await tell(letter))) return;
      }
    },
  };
}
