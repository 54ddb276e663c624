/** Delivers outbox messages to the central API at least once. Messages of one partition are sent in order. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { dueMessages, parkMessage, postponeMessage, removeMessage } from './outbox.store.ts';
import type { EvidenceStore, MessageKind, OutboxRow } from './tables.ts';

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;
/** Attempts before a message is parked: about one day at the longest pause. */
export const MAX_ATTEMPTS = 300;
/** HTTP statuses of temporary failures, after which the message is sent again. */
const RETRYABLE_STATUSES: readonly number[] = [408, 409, 425, 429];
const JITTER_STEPS = 1_000;
/** Maximum number of partitions delivered in parallel. */
const MAX_PARALLEL = 8;

/** Result of one attempt. */
export type Outcome =
  | { state: 'delivered' }
  /** Permanent: the message is parked for an operator. */
  | { state: 'refused'; reason: string }
  /** Temporary: the message is sent again later. */
  | { state: 'unavailable'; reason: string };

/** Delivery of one kind of message. */
export type Delivery = {
  /** Resolves with the outcome, whatever the receiver responds. */
  deliver(message: OutboxRow): Promise<Outcome>;
  /** Called after a message was parked. */
  onParked(message: OutboxRow): Promise<void>;
};

export type OutboxOptions = {
  store: EvidenceStore;
  clock: Clock;
  random: Random;
  log: Log;
  deliveries: Readonly<Record<MessageKind, Delivery>>;
};

export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(options: OutboxOptions) {
  const { store, clock, random, log, deliveries } = options;
  let running: Promise<void> | null = null;
  let isRequested = false;

  async function attempt(message: OutboxRow): Promise<Outcome['state']> {
    const outcome = await deliveries[message.kind].deliver(message);
    if (outcome.state === 'delivered') {
      await removeMessage(store, message.seq);
      return 'delivered';
    }
    const { seq, kind, subject } = message;
    const attempts = message.attempts + 1;
    const { reason } = outcome;
    const about = { kind, subject, attempts, reason };
    if (outcome.state === 'refused' || attempts >= MAX_ATTEMPTS) {
      await parkMessage(store, { seq, kind, attempts }, { parkedMs: clock.now(), reason });
      await deliveries[kind].onParked(message);
      log.error(about, 'message parked');
      return 'refused';
    }
    const pauseMs = pauseAfter(attempts, random.int(JITTER_STEPS) / JITTER_STEPS);
    await postponeMessage(store, { seq, attempts }, { nextMs: clock.now() + pauseMs, reason });
    log.warn(about, 'message not delivered, will retry');
    return 'unavailable';
  }

  /** Delivers messages until none is due, or until a whole batch found the receiver unavailable. */
  async function pass(): Promise<void> {
    for (;;) {
      const nowMs = clock.now();
      // A message whose time is further ahead than the longest pause was postponed before the clock was set back.
      const times = { nowMs, latestMs: nowMs + LONGEST_PAUSE_MS };
      const due = await dueMessages(store, times, MAX_PARALLEL);
      if (due.length === 0) return;
      const states = await Promise.all(due.map(attempt));
      if (states.every((state) => state === 'unavailable')) return;
    }
  }

  async function passWhileRequested(): Promise<void> {
    while (isRequested) {
      isRequested = false;
      await pass();
    }
  }

  return {
    /**
     * Delivers the messages that are due. A postponed message delays only its own partition; a parked message delays
     * none. Concurrent calls share one pass, which tries every message that was stored before the last of these calls.
     */
    runOnce(): Promise<void> {
      isRequested = true;
      running ??= passWhileRequested().finally(() => {
        running = null;
      });
      return running;
    },
  };
}

/** Milliseconds from attempt number `attempts` (from 1) to the next; `jitter` is in [0, 1). */
export function pauseAfter(attempts: number, jitter: number): number {
  const whole = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 30), LONGEST_PAUSE_MS);
  return Math.round(whole / 2 + (whole / 2) * jitter);
}

/** Outcome of a response with a status other than success. */
export function outcomeOf(status: number, reason: string): Outcome {
  const isRefusal = status >= 400 && status < 500 && !RETRYABLE_STATUSES.includes(status);
  return isRefusal ? { state: 'refused', reason } : { state: 'unavailable', reason };
}
