import { describe, expect, it } from 'vitest';
import {
  BELIEVED_STEP_MS,
  beginGuard,
  type ClockReading,
  type ClockRecord,
  confirmClock,
  continuedMs,
  type GuardState,
  MAX_ABSENCE_MS,
  observeClock,
  observePeer,
  observeReturn,
} from './clock-guard.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const START_MS = 1_800_000_000_000;

/** A reading `ranMs` after the boot, in which the host slept for `sleptMs`. The clock is `offMs` ahead of the right time. */
function reading(ranMs: number, { offMs = 0, sleptMs = 0, bootId = 'first' } = {}): ClockReading {
  const uptimeMs = ranMs + sleptMs;
  return { wallMs: START_MS + uptimeMs + offMs, monotonicMs: ranMs, uptimeMs, bootId };
}

const recordAt = (ranMs: number): ClockRecord => {
  const { wallMs: timeMs, uptimeMs, bootId } = reading(ranMs);
  return { timeMs, uptimeMs, bootId };
};

/** A reading after a reboot, `absentMs` after the record by the clock. */
const rebooted = (record: ClockRecord, absentMs: number): ClockReading => ({
  wallMs: record.timeMs + absentMs,
  monotonicMs: 5,
  uptimeMs: 60 * SECOND_MS,
  bootId: 'second',
});

const observed = (state: GuardState, ...readings: ClockReading[]) =>
  readings.reduce(observeClock, state);

describe('at the start', () => {
  it('believes the clock at the first start, and after a plausible absence', () => {
    expect(beginGuard(reading(0, { offMs: DAY_MS }), null)).toMatchObject({
      suspicion: null,
      timeMs: START_MS + DAY_MS,
    });
    const record = recordAt(HOUR_MS);
    for (const absentMs of [-BELIEVED_STEP_MS, 0, DAY_MS, MAX_ABSENCE_MS]) {
      const now = rebooted(record, absentMs);
      expect(beginGuard(now, record)).toMatchObject({ suspicion: null, timeMs: now.wallMs });
    }
  });

  it('holds the stored time if a clock after a reboot is before it or far after it', () => {
    const record = recordAt(HOUR_MS);
    const cases = [
      [-BELIEVED_STEP_MS - 1, 'before_record'],
      [-20 * 365 * DAY_MS, 'before_record'],
      [MAX_ABSENCE_MS + 1, 'far_after_record'],
      [40 * DAY_MS, 'far_after_record'],
    ] as const;
    for (const [absentMs, suspicion] of cases) {
      const state = beginGuard(rebooted(record, absentMs), record);
      expect(state).toMatchObject({ suspicion, timeMs: record.timeMs });
    }
  });

  it('continues the stored time by the uptime if the host has not rebooted, however long the process was stopped', () => {
    const record = recordAt(HOUR_MS);
    const later = reading(HOUR_MS + 30 * DAY_MS);
    expect(beginGuard(later, record)).toMatchObject({ suspicion: null, timeMs: later.wallMs });
    const ahead = reading(2 * HOUR_MS, { offMs: 60 * SECOND_MS });
    expect(beginGuard(ahead, record)).toMatchObject({
      suspicion: 'jumped',
      timeMs: START_MS + 2 * HOUR_MS,
    });
  });

  it('believes a clock that is set later to a time that would have been plausible', () => {
    const record = recordAt(HOUR_MS);
    const begun = beginGuard(rebooted(record, -20 * 365 * DAY_MS), record);
    const still = { ...rebooted(record, -20 * 365 * DAY_MS + 5_000), monotonicMs: 5_005 };
    expect(observeReturn(observeClock(begun, still), still).suspicion).toBe('before_record');
    const set = { ...rebooted(record, DAY_MS), monotonicMs: 10_005 };
    expect(observeReturn(observeClock(begun, set), set)).toMatchObject({
      suspicion: null,
      timeMs: set.wallMs,
    });
  });
});

describe('while the process runs', () => {
  const begun = beginGuard(reading(0), null);

  it('follows small corrections and the sleep of the host', () => {
    const corrected = observed(begun, reading(HOUR_MS, { offMs: BELIEVED_STEP_MS }));
    expect(corrected).toMatchObject({
      suspicion: null,
      timeMs: START_MS + HOUR_MS + BELIEVED_STEP_MS,
    });
    const woken = reading(2 * HOUR_MS, { sleptMs: 21 * DAY_MS });
    expect(observed(begun, reading(HOUR_MS), woken)).toMatchObject({
      suspicion: null,
      timeMs: woken.wallMs,
    });
  });

  it.each([40 * DAY_MS, -40 * DAY_MS, BELIEVED_STEP_MS + 1])(
    'holds the time during a jump by %d ms, and believes the clock when it returns',
    (offMs) => {
      const jumped = observed(begun, reading(10_000, { offMs }), reading(20_000, { offMs }));
      expect(jumped).toMatchObject({ suspicion: 'jumped', timeMs: START_MS + 20_000 });
      expect(continuedMs(jumped, reading(25_000, { offMs }))).toBe(START_MS + 25_000);
      expect(observed(jumped, reading(35_000))).toMatchObject({
        suspicion: null,
        timeMs: START_MS + 35_000,
      });
    },
  );

  it('without the uptime, mistakes sleep for a jump until a peer agrees', () => {
    const blind = (ranMs: number, sleptMs = 0) => ({
      ...reading(ranMs, { sleptMs }),
      uptimeMs: null,
      bootId: null,
    });
    const woken = observed(beginGuard(blind(0), null), blind(HOUR_MS, 21 * DAY_MS));
    expect(woken.suspicion).toBe('jumped');
    const now = blind(HOUR_MS, 21 * DAY_MS);
    expect(observePeer(woken, now, now.wallMs + 20_000)).toMatchObject({
      suspicion: null,
      timeMs: now.wallMs,
    });
  });

  it('does not believe a jump because a peer has the earlier time', () => {
    const now = reading(10_000, { offMs: 40 * DAY_MS });
    const jumped = observed(begun, now);
    expect(observePeer(jumped, now, START_MS + 10_000)).toEqual(jumped);
  });
});

describe('a peer', () => {
  const begun = beginGuard(reading(0), null);
  const differs = (state: GuardState, times: number) =>
    Array.from({ length: times }).reduce<GuardState>(
      (now) => observePeer(now, reading(1_000), START_MS + HOUR_MS),
      state,
    );

  it('makes the clock suspect when it differs three times in a row, until it agrees', () => {
    const twice = differs(begun, 2);
    expect(twice.suspicion).toBeNull();
    expect(differs(observePeer(twice, reading(1_000), START_MS), 2).suspicion).toBeNull();
    const suspect = differs(twice, 1);
    expect(suspect).toMatchObject({ suspicion: 'peer_differs', timeMs: START_MS });
    expect(observed(suspect, reading(5_000)).suspicion).toBe('peer_differs');
    expect(observePeer(suspect, reading(5_000), START_MS + 4_000).suspicion).toBeNull();
  });

  it('is trusted together with a clock that is set to its time', () => {
    const suspect = differs(begun, 3);
    const set = reading(5_000, { offMs: HOUR_MS });
    const held = observed(suspect, set);
    expect(held).toMatchObject({ suspicion: 'peer_differs', timeMs: START_MS + 5_000 });
    expect(observePeer(held, set, START_MS + HOUR_MS + 5_000)).toMatchObject({
      suspicion: null,
      timeMs: set.wallMs,
    });
  });

  it('does not count after an operator has confirmed the clock, until it agrees once', () => {
    const confirmed = confirmClock(differs(begun, 3), reading(5_000));
    expect(differs(confirmed, 5).suspicion).toBeNull();
    const agreed = observePeer(confirmed, reading(5_000), START_MS);
    expect(differs(agreed, 3).suspicion).toBe('peer_differs');
  });
});

it('believes any clock that an operator confirms', () => {
  const now = reading(10_000, { offMs: 40 * DAY_MS });
  const jumped = observed(beginGuard(reading(0), null), now);
  expect(confirmClock(jumped, now)).toMatchObject({ suspicion: null, timeMs: now.wallMs });
});
