/** Limits for silent nodes, each at its boundary. */
import { expect, it } from 'vitest';
import { CheckResult } from '#shared/api/central/validator-routes.ts';
import { billableUntil, deferUntilContact, isSilent, lossReason } from './pod-contact.ts';

const SEEN_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const heard = { state: 'running', phase: 'ready', seen_at: SEEN_MS };

it.each([
  ['up to a minute', {}, MINUTE_MS - 1, false],
  ['from a minute on', {}, MINUTE_MS, true],
  ['while it reboots, too', { state: 'rebooting' }, MINUTE_MS, true],
  ['not once it is marked as unreachable', { phase: 'unreachable' }, HOUR_MS, false],
  ['not while it is free of charge', { state: 'starting' }, HOUR_MS, false],
  ['not before the first contact', { seen_at: null }, HOUR_MS, false],
] as const)('misses a pod %s', (_, change, silentMs, expected) => {
  const pod = { ...heard, ...change };
  expect(isSilent(pod, SEEN_MS + silentMs)).toBe(expected);
  const endMs = expected ? SEEN_MS : SEEN_MS + silentMs;
  expect(billableUntil(pod, SEEN_MS + silentMs)).toBe(endMs);
});

it('waits half a minute for contact with a silent pod, once', () => {
  const plannedMs = SEEN_MS + MINUTE_MS;
  const at = (dueAtMs: number, nowMs: number) =>
    deferUntilContact([heard], { plannedMs, dueAtMs, nowMs });
  expect(at(plannedMs, plannedMs + HOUR_MS)).toBe(plannedMs + HOUR_MS + 30_000);
  expect(at(plannedMs + HOUR_MS + 30_000, plannedMs + 2 * HOUR_MS)).toBeNull();
  const early = { plannedMs: plannedMs - 1, dueAtMs: plannedMs - 1, nowMs: plannedMs };
  expect(deferUntilContact([heard], early)).toBeNull();
});

/** A verdict of the reachability check this long after the last contact. */
const failedAfter = (ms: number, reason_code = 'AGENT_UNREACHABLE') => ({
  state: 'failed' as const,
  verdict_at: SEEN_MS + ms,
  checks_json: JSON.stringify([
    CheckResult.parse({
      check_id: 'reachable',
      passed: false,
      measured: 'no answer',
      required: 'an answer',
      message: 'The agent did not answer',
      remediation: 'Start it',
      reason_code,
    }),
  ]),
});

it.each([
  ['two hours without contact', undefined, 2 * HOUR_MS, true],
  ['a millisecond less', undefined, 2 * HOUR_MS - 1, false],
  ['a verdict a minute after the last contact', failedAfter(MINUTE_MS), HOUR_MS, true],
  ['a verdict a millisecond less after it', failedAfter(MINUTE_MS - 1), HOUR_MS, false],
  ['another failure of the node', failedAfter(HOUR_MS, 'TLS_PIN_MISMATCH'), HOUR_MS, false],
])('handles the loss of a pod after %s', (_, node, silentMs, isLost) => {
  const times = { lostAtMs: SEEN_MS, nowMs: SEEN_MS + silentMs };
  expect(lossReason(node, times) !== null).toBe(isLost);
});
