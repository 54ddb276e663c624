/**
 * Decides which time a process believes. A host's clock may jump: by hand, by a failed battery, by a wrong time server.
 * The guard compares the wall clock with the time that has passed since the last reading, with the last stored reading
 * and with peers. On an implausible jump it holds the earlier time, which continues at the pace of the monotonic clock,
 * until the clock returns, a peer agrees with it, or an operator confirms it. Pure.
 */

/** One reading of the host's clocks, in milliseconds. */
export type ClockReading = {
  wallMs: number;
  /** Stops while the host sleeps. */
  monotonicMs: number;
  /** Time since the host booted, including the time it slept; null if unknown. */
  uptimeMs: number | null;
  /** Changes with every boot; null if unknown. */
  bootId: string | null;
};

/** Believed time at a reading, as it is stored for the next start. */
export type ClockRecord = Pick<ClockReading, 'uptimeMs' | 'bootId'> & { timeMs: number };

/** Reason why the clock is suspect. */
export const CLOCK_SUSPICIONS = [
  /** The clock jumped while the process ran, or between two starts without a reboot. */
  'jumped',
  /** After a reboot the clock is before the last stored time. */
  'before_record',
  /** After a reboot the clock is more than MAX_ABSENCE_MS after the last stored time. */
  'far_after_record',
  /** A peer has another time. */
  'peer_differs',
] as const;
export type ClockSuspicion = (typeof CLOCK_SUSPICIONS)[number];

export type GuardState = {
  /** Believed time at this reading of the other clocks. */
  timeMs: number;
  monotonicMs: number;
  uptimeMs: number | null;
  suspicion: ClockSuspicion | null;
  /** Consecutive times of peers that differ from the trusted time. */
  differing: number;
  /** True after an operator has confirmed a time that peers do not share, until a peer agrees. */
  ignoresPeers: boolean;
};

/** Largest step that is trusted at once. Signed requests accept the same difference. */
export const BELIEVED_STEP_MS = 30_000;
/** Longest time for which a host is plausibly switched off. After a longer time a peer or an operator must agree. */
export const MAX_ABSENCE_MS = 3 * 86_400_000;
/** Largest difference to a peer: its own step, and the skew that its signature check accepts. */
export const PEER_TOLERANCE_MS = 60_000;
/**
 * Consecutive differing times of peers after which the clock is suspect. A single time may have been delayed.
 */
const DIFFERING_IN_A_ROW = 3;

/** Judges the clock at the start of a process. `record` is null at the first start, which believes the clock. */
export function beginGuard(reading: ClockReading, record: ClockRecord | null): GuardState {
  const { wallMs, monotonicMs, uptimeMs } = reading;
  const at = (timeMs: number, suspicion: ClockSuspicion | null): GuardState => ({
    timeMs,
    monotonicMs,
    uptimeMs,
    suspicion,
    differing: 0,
    ignoresPeers: false,
  });
  if (record === null) return at(wallMs, null);
  const runMs = sameBootMs(reading, record);
  if (runMs !== null) {
    const expectedMs = record.timeMs + runMs;
    return isClose(wallMs, expectedMs) ? at(wallMs, null) : at(expectedMs, 'jumped');
  }
  const absentMs = wallMs - record.timeMs;
  if (absentMs < -BELIEVED_STEP_MS) return at(record.timeMs, 'before_record');
  if (absentMs > MAX_ABSENCE_MS) return at(record.timeMs, 'far_after_record');
  return at(wallMs, null);
}

/** Milliseconds since the record if the host has not rebooted since; otherwise null. */
function sameBootMs({ bootId, uptimeMs }: ClockReading, record: ClockRecord): number | null {
  if (bootId === null || bootId !== record.bootId) return null;
  if (uptimeMs === null || record.uptimeMs === null || uptimeMs < record.uptimeMs) return null;
  return uptimeMs - record.uptimeMs;
}

/** Returns the time that continues from the state at the pace of the other clocks. */
export function continuedMs(
  state: GuardState,
  { monotonicMs, uptimeMs }: Pick<ClockReading, 'monotonicMs' | 'uptimeMs'>,
): number {
  const ranMs = monotonicMs - state.monotonicMs;
  // The monotonic clock stops while the host sleeps.
  const upMs = uptimeMs === null || state.uptimeMs === null ? ranMs : uptimeMs - state.uptimeMs;
  return state.timeMs + Math.max(ranMs, upMs);
}

/** Judges the wall clock against the passed time. The trusted time makes no step. */
export function observeClock(state: GuardState, reading: ClockReading): GuardState {
  const { wallMs } = reading;
  const expectedMs = continuedMs(state, reading);
  const ranOnlyMs = state.timeMs + reading.monotonicMs - state.monotonicMs;
  const fits = isClose(wallMs, expectedMs) || isClose(wallMs, ranOnlyMs);
  const { suspicion } = state;
  if (suspicion === 'peer_differs') return moved(state, reading, fits ? wallMs : expectedMs);
  if (fits) return trusted(state, reading);
  return { ...moved(state, reading, expectedMs), suspicion: suspicion ?? 'jumped' };
}

/** Believes a clock that was implausible at the start and was since set to a time that would have been plausible. */
export function observeReturn(state: GuardState, reading: ClockReading): GuardState {
  const { suspicion } = state;
  if (suspicion !== 'before_record' && suspicion !== 'far_after_record') return state;
  const aheadMs = reading.wallMs - continuedMs(state, reading);
  return aheadMs > 0 && aheadMs <= MAX_ABSENCE_MS ? trusted(state, reading) : state;
}

/** Judges the time of an authenticated peer. */
export function observePeer(state: GuardState, reading: ClockReading, peerMs: number): GuardState {
  const agrees = (timeMs: number) => Math.abs(peerMs - timeMs) <= PEER_TOLERANCE_MS;
  if (agrees(reading.wallMs)) {
    return { ...trusted(state, reading), differing: 0, ignoresPeers: false };
  }
  if (state.suspicion !== null || state.ignoresPeers) return state;
  const differing = state.differing + 1;
  if (differing < DIFFERING_IN_A_ROW) return { ...state, differing };
  return { ...state, differing, suspicion: 'peer_differs' };
}

/** Believes the wall clock because an operator confirms it. */
export function confirmClock(state: GuardState, reading: ClockReading): GuardState {
  return { ...trusted(state, reading), differing: 0, ignoresPeers: true };
}

function trusted(state: GuardState, reading: ClockReading): GuardState {
  return { ...moved(state, reading, reading.wallMs), suspicion: null };
}

function moved(
  state: GuardState,
  { monotonicMs, uptimeMs }: ClockReading,
  timeMs: number,
): GuardState {
  return { ...state, timeMs, monotonicMs, uptimeMs };
}

function isClose(aMs: number, bMs: number): boolean {
  return Math.abs(aMs - bMs) <= BELIEVED_STEP_MS;
}
