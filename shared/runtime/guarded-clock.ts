/**
 * A clock that does not follow implausible jumps of the host's clock. `clock-guard.ts` decides; this file reads the
 * clocks, reports and stores.
 */
import { type Clock, naiveUtc } from './clock.ts';
import {
  BELIEVED_STEP_MS,
  beginGuard,
  type ClockReading,
  type ClockRecord,
  type ClockSuspicion,
  confirmClock,
  continuedMs,
  type GuardState,
  observeClock,
  observePeer,
  observeReturn,
} from './clock-guard.ts';
import { messageOf } from './errors.ts';
import type { Log } from './log.ts';
import { type Loop, startLoop } from './loop.ts';

const LOOK_INTERVAL_MS = 5_000;
/**
 * Interval at which the time is stored, ms. It is also stored when the clock becomes suspect or is trusted
 * again.
 */
const STORE_INTERVAL_MS = 30_000;
/**
 * Maximum age of the cached uptime, ms. Reading the uptime opens a file, and a suspect clock needs it at
 * every call of `now`.
 */
const UPTIME_READ_MS = 1_000;

export type ClockStatus = {
  /** Null while the clock is trusted. */
  suspicion: ClockSuspicion | null;
  /** Believed time, milliseconds since the epoch. */
  timeMs: number;
  /** Time of the host's clock, milliseconds since the epoch. */
  wallMs: number;
  /** Time of the last peer that differed; null unless a peer differs. */
  peerMs: number | null;
};

/** Storage of the trusted time for the next start. */
export type ClockRecords = {
  /** Returns null before the first start. */
  read(): ClockRecord | null;
  write(record: ClockRecord & ClockStatus): void;
  /** Returns true once after an operator has confirmed the clock with the command. */
  takeConfirmation(): boolean;
};

/** The host's boot: its id, and the time since then, including the time it slept. */
export type HostBoot = { uptimeMs(): number | null; bootId: string | null };

export type GuardedClockOptions = {
  /** The host's clock. */
  clock: Clock;
  log: Log;
  /** Default: unknown; then sleep of the host looks like a jump. */
  boot?: HostBoot;
  /** Null, the default: nothing is stored, and every start believes the clock. */
  records?: ClockRecords | null;
};

export type GuardedClock = ReturnType<typeof createGuardedClock>;

/** Functions for modules that suspend work while the clock is suspect. */
export type ClockTrust = Pick<GuardedClock, 'isSuspect' | 'isStepping' | 'resumedAtMs'>;

const UNKNOWN_BOOT: HostBoot = { uptimeMs: () => null, bootId: null };
const SUSPENDED =
  'the clock is suspect: deletions, expiries, schedules and verdicts are suspended until it returns, a peer agrees with it or an operator confirms it';

/** Judges the clock against the stored time. Every call of `clock.now` judges it again. */
export function createGuardedClock(options: GuardedClockOptions) {
  const { clock: host, log, boot = UNKNOWN_BOOT, records = null } = options;
  let uptime = { readMs: Number.NEGATIVE_INFINITY, value: null as number | null };
  let isBelieved = true;
  let state = beginGuard(read(), records?.read() ?? null);
  let peerMs: number | null = null;
  let resumedMs = Number.NEGATIVE_INFINITY;
  let storedMs = Number.NEGATIVE_INFINITY;
  let isStepping = false;
  let loop: Loop | null = null;
  const preparations: (() => Promise<void>)[] = [];
  isBelieved = state.suspicion === null;
  if (!isBelieved) report();

  function read(): ClockReading {
    const monotonicMs = host.monotonicMs();
    // A trusted clock is read rarely, and must not be suspected because of an old uptime.
    const isOld = monotonicMs - uptime.readMs >= UPTIME_READ_MS;
    if (isOld || isBelieved) {
      uptime = { readMs: monotonicMs, value: boot.uptimeMs() };
    }
    const uptimeMs = uptime.value === null ? null : uptime.value + monotonicMs - uptime.readMs;
    return { wallMs: host.now(), monotonicMs, uptimeMs, bootId: boot.bootId };
  }

  function report(): void {
    const { suspicion, wallMs, timeMs, peerMs: peer } = statusNow();
    const times = { wall: naiveUtc(wallMs), trusted: naiveUtc(timeMs) };
    log.error(
      { suspicion, ...times, ...(peer === null ? {} : { peer: naiveUtc(peer) }) },
      SUSPENDED,
    );
  }

  /** Moves to `next`, and reports and stores a change of the suspicion. */
  function become(next: GuardState, reading: ClockReading): void {
    const before = state;
    const ranMs = before.timeMs + reading.monotonicMs - before.monotonicMs;
    state = next;
    isBelieved = next.suspicion === null;
    const isEnd = before.suspicion !== null && next.suspicion === null;
    if (isEnd || Math.abs(next.timeMs - ranMs) > BELIEVED_STEP_MS) resumedMs = next.timeMs;
    if (before.suspicion === next.suspicion) return;
    if (isEnd) {
      log.warn(
        { suspicion: before.suspicion, trusted: naiveUtc(next.timeMs) },
        'the clock is trusted again',
      );
    } else report();
    store();
  }

  function look(): void {
    const reading = read();
    become(observeClock(state, reading), reading);
  }

  /** Judges with `judge`. Runs the preparations before the trusted time makes a step; a failed one prevents the step. */
  async function judgeBy(judge: (state: GuardState, reading: ClockReading) => GuardState) {
    look();
    const reading = read();
    const next = judge(state, reading);
    if (Math.abs(next.timeMs - continuedMs(state, reading)) <= BELIEVED_STEP_MS) {
      become(next, reading);
      return;
    }
    if (isStepping) return;
    isStepping = true;
    try {
      for (const prepare of preparations) await prepare();
      look();
      const present = read();
      become(judge(state, present), present);
    } finally {
      isStepping = false;
    }
  }

  function store(): void {
    storedMs = host.monotonicMs();
    const { uptimeMs, bootId } = read();
    try {
      records?.write({ ...statusNow(), uptimeMs, bootId });
    } catch (error) {
      log.warn({ detail: messageOf(error) }, 'storing the time failed');
    }
  }

  function statusNow(): ClockStatus {
    const reading = read();
    const { suspicion } = state;
    return {
      suspicion,
      timeMs: Math.round(suspicion === null ? reading.wallMs : continuedMs(state, reading)),
      wallMs: reading.wallMs,
      peerMs: suspicion === 'peer_differs' ? peerMs : null,
    };
  }

  async function confirm(): Promise<ClockStatus> {
    await judgeBy(confirmClock);
    return statusNow();
  }

  const clock: Clock = {
    ...host,
    now() {
      const wallMs = host.now();
      const ranMs = state.timeMs + host.monotonicMs() - state.monotonicMs;
      const fits = Math.abs(wallMs - ranMs) <= BELIEVED_STEP_MS;
      if (fits && state.suspicion === null) return wallMs;
      look();
      return statusNow().timeMs;
    },
  };

  return {
    /** The clock for all other parts of the process. */
    clock,

    /** Returns true while deletions, expiries, schedules and verdicts are suspended. */
    isSuspect(): boolean {
      look();
      return state.suspicion !== null;
    },

    /** Returns true while the preparations of a step run. */
    isStepping: (): boolean => isStepping,

    /**
     * Returns the trusted time at which the process resumed after a suspicion, a step or sleep of the host; negative
     * infinity if it never did. Before that time, this process may have missed messages, so the silence of
     * other processes proves nothing.
     */
    resumedAtMs: (): number => resumedMs,

    status(): ClockStatus {
      look();
      return statusNow();
    },

    /** Judges by the present time of an authenticated peer. */
    heardFrom(timeMs: number): void {
      peerMs = timeMs;
      judgeBy((before, reading) => observePeer(before, reading, timeMs)).catch((error: unknown) =>
        log.error({ err: error }, 'correcting the time failed'),
      );
    },

    /** Believes the host's clock because an operator confirms it. Rejects if a preparation fails. */
    confirm,

    /** Runs `prepare` before every step of the trusted time, while the earlier time is still trusted. */
    beforeStep(prepare: () => Promise<void>): void {
      preparations.push(prepare);
    },

    /** Reads the clock and stores the time at intervals. */
    start(): void {
      loop ??= startLoop({
        clock: host,
        intervalMs: LOOK_INTERVAL_MS,
        async run() {
          await judgeBy(observeReturn);
          if (records?.takeConfirmation() === true) await confirm();
          if (host.monotonicMs() - storedMs >= STORE_INTERVAL_MS) store();
        },
        onError: (error) => log.error({ err: error }, 'judging the clock failed'),
      });
    },

    async stop(): Promise<void> {
      if (loop === null) return;
      await loop.stop();
      loop = null;
      store();
    },
  };
}
