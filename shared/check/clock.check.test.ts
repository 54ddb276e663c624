import { expect, it } from 'vitest';
import { parseHttpDate } from '../runtime/clock.ts';
import type { ClockSuspicion } from '../runtime/clock-guard.ts';
import { CLOCK_CHECKS, type ClockFacts } from './clock.check.ts';
import { findingsOf } from './doctor.ts';

const clockFindings = (facts: ClockFacts) => findingsOf(CLOCK_CHECKS, facts);
const URL = 'https://central.example/';
const statusOf = (ms: number, withinMs = 600) =>
  clockFindings({
    synchronised: { value: true },
    stored: { value: null },
    skew: { url: URL, observed: { value: { ms, withinMs } } },
  })[1]?.status;

it('compares the smallest possible skew with the limit for signed requests', () => {
  expect([0, 5_000, -5_000].map((ms) => statusOf(ms))).toEqual(['ok', 'ok', 'ok']);
  expect([7_000, -7_000, 30_500].map((ms) => statusOf(ms))).toEqual(['warn', 'warn', 'warn']);
  expect([31_000, -86_400_000].map((ms) => statusOf(ms))).toEqual(['fail', 'fail']);
});

it('reports unknown if the clocks cannot be read', () => {
  const findings = clockFindings({
    synchronised: { problem: 'timedatectl failed' },
    skew: null,
    stored: { value: null },
  });
  expect(findings.map(({ status }) => status)).toEqual(['unknown', 'unknown', 'ok']);
  expect(findings[1]?.remedy).toContain('--time-from');
  const [kept] = clockFindings({
    synchronised: { value: false },
    skew: null,
    stored: { value: null },
  });
  expect(kept).toMatchObject({ status: 'warn', remedy: expect.stringContaining('set-ntp') });
});

it('reports a suspect clock, and a clock before the stored time', () => {
  const trust = (suspicion: ClockSuspicion | null, nowMs: number) => {
    const clock = {
      timeMs: 100_000,
      wallMs: 100_000,
      uptimeMs: 1,
      bootId: 'b',
      peerMs: null,
      suspicion,
    };
    const stored = { value: { nowMs, clock } };
    return clockFindings({ synchronised: { value: true }, skew: null, stored })[2];
  };
  expect(trust(null, 100_000)?.status).toBe('ok');
  expect(trust(null, 60_000)?.status).toBe('fail');
  expect(trust('jumped', 100_000)).toMatchObject({
    status: 'fail',
    finding: expect.stringContaining('jumped'),
    remedy: expect.stringContaining('clock confirm'),
  });
});

it('parses HTTP dates and rejects other formats', () => {
  expect(parseHttpDate('Thu, 01 Jan 1970 00:00:10 GMT')).toBe(10_000);
  expect(parseHttpDate('1970-01-01T00:00:10Z')).toBeNull();
  expect(parseHttpDate('')).toBeNull();
});
