/** Limits for silent nodes, each at its boundary. */
import { expect, it } from 'vitest';
import { CheckResult } from '#shared/api/central/validator-routes.ts';
import { billableUntil, deferUntilContact, isSilent, lossReason } from './pod-contact.ts';

const SEEN_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const RECENT = { state: 'running', phase: 'ready', seen_at: SEEN_MS };

it.each([
  ['is not silent before a minute without contact', {}, MINUTE_MS - 1, false],
  ['is silent from a minute on', {}, MINUTE_MS, true],
  ['is also silent while it reboots', { state: 'rebooting' }, MINUTE_MS, true],
  ['is not silent once it is marked unreachable', { phase: 'unreachable' }, HOUR_MS, false],
  ['is not silent while it is not charged', { state: 'starting' }, HOUR_MS, false],
  ['is not silent before the first contact', { seen_at: null }, HOUR_MS, false],
] as const)('a pod %s', (_, change, silentMs, expected) => {
  const pod = { ...RECENT, ...change };
  expect(isSilent(pod, SEEN_MS + silentMs)).toBe(expected);
  const endMs = expected ? SEEN_MS : SEEN_MS + silentMs;
  expect(billableUntil(pod, SEEN_MS + silentMs)).toBe(endMs);
});

it('defers an action once, by half a minute, to wait for contact with a silent pod', () => {
  const plannedMs = SEEN_MS + MINUTE_MS;
  const at = (dueAtMs: number, nowMs: number) =>
    deferUntilContact([RECENT], { plannedMs, dueAtMs, nowMs });
  expect(at(plannedMs, plannedMs + HOUR_MS)).toBe(plannedMs + HOUR_MS + 30_000);
  expect(at(plannedMs + HOUR_MS + 30_000, plannedMs + 2 * HOUR_MS)).toBeNull();
  const early = { plannedMs: plannedMs - 1, dueAtMs: plannedMs - 1, nowMs: plannedMs };
  expect(deferUntilContact([RECENT], early)).toBeNull();
});

/** Returns a failed verdict of the reachability check, recorded `ms` after the last contact. */
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
  ['a millisecond less than two hours', undefined, 2 * HOUR_MS - 1, false],
  ['a verdict a minute after the last contact', failedAfter(MINUTE_MS), HOUR_MS, true],
  ['a verdict a millisecond too early', failedAfter(MINUTE_MS - 1), HOUR_MS, false],
  ['another failure of the node', failedAfter(HOUR_MS, 'TLS_PIN_MISMATCH'), HOUR_MS, false],
])('decides whether a pod is lost after %s', (_, node, silentMs, isLost) => {
  const times = { lostAtMs: SEEN_MS, nowMs: SEEN_MS + silentMs };
  expect(lossReason(node, times) !== null).toBe(isLost);
});
