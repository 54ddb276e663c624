import { expect, it } from 'vitest';
import { isBlocking } from '#shared/api/central/validator-routes.ts';
import { inventoryOf } from '../../test/fixtures/inventory.ts';
import type { Facts, Refusal } from './check.ts';
import { readCheckPolicy } from './check-policy.ts';
import { nothingMeasured } from './measured.ts';
import { judge, TRANSPORT_FAILURES_ALLOWED } from './verdict.ts';

const EXECUTOR_ID = '11111111-1111-4111-8111-111111111111';
const NOW_MS = 1_800_000_000_000;
const OTHER_ID = '22222222-2222-4222-8222-222222222222';

function facts(change: Partial<Facts> = {}): Facts {
  return {
    executor: {
      id: EXECUTOR_ID,
      executor_ip_address: '127.0.0.1',
      executor_ip_port: '8080',
      uptime_in_minutes: null,
      miner_hotkey: 'unused',
      gpu_type: 'H100',
      gpu_count: 2,
      gpu_uuids: [],
      rented: false,
      pod_ids: null,
      price_uusd: null,
      collateral_deposited: null,
    },
    inventory: inventoryOf({ executorId: EXECUTOR_ID, collectedMs: NOW_MS, gpuCount: 2 }),
    transportError: null,
    refusal: null,
    identity: { publicKey: 'ab'.repeat(32), enrolledUntilMs: NOW_MS + 1 },
    receivedMs: NOW_MS,
    probe: { ok: true, reason_code: null, steps: [], simulated: false },
    measured: nothingMeasured(NOW_MS),
    policy: { acceptSimulated: false, checks: readCheckPolicy() },
    ...change,
  };
}

const inventory = (change: Parameters<typeof inventoryOf>[0]) =>
  inventoryOf({ executorId: EXECUTOR_ID, collectedMs: NOW_MS, gpuCount: 2, ...change });

/** An answer that was rejected. */
function refused(refusal: Refusal): Partial<Facts> {
  return { inventory: null, identity: null, probe: null, transportError: 'because', refusal };
}

it('verifies a genuine executor', () => {
  const report = judge(facts(), 0);
  expect(report.verdict).toBe('verified');
  expect(report.checks.every((check) => check.passed && check.reason_code === null)).toBe(true);
});

it.each([
  ['another identity', { inventory: inventory({ executorId: OTHER_ID }) }, 'IDENTITY_CHANGED'],
  [
    'an enrolment that has expired',
    { identity: { publicKey: 'ab'.repeat(32), enrolledUntilMs: NOW_MS } },
    'NOT_ENROLLED',
  ],
  ['an agent that was never enrolled', refused('NOT_ENROLLED'), 'NOT_ENROLLED'],
  ['a wrong clock', { inventory: inventory({ collectedMs: NOW_MS - 31_000 }) }, 'CLOCK_SKEW'],
  ['unreadable GPUs', { inventory: inventory({ gpuError: 'NVML' }) }, 'GPU_UNREADABLE'],
  ['simulated GPUs', { inventory: inventory({ simulated: true }) }, 'GPU_SIMULATED'],
  ['a missing card', { inventory: inventory({ gpuCount: 1 }) }, 'GPU_COUNT_MISMATCH'],
  ['one UUID twice', { inventory: inventory({ sameUuid: true }) }, 'GPU_DUPLICATE'],
  ['another model', { inventory: inventory({ gpuName: 'NVIDIA H200 Z' }) }, 'GPU_MODEL_MISMATCH'],
  [
    'a runtime that refuses the GPUs',
    {
      probe: {
        ok: false,
        reason_code: 'GPU_RUNTIME_DEVICE_FAULT',
        steps: [{ name: 'start', status: 'failed' as const, ms: 3, message: 'no driver' }],
        simulated: false,
      },
    },
    'GPU_RUNTIME_DEVICE_FAULT',
  ],
])('fails %s with its reason and a remedy', (_, change, reasonCode) => {
  const report = judge(facts(change), 0);
  const failed = report.checks.filter(isBlocking);
  expect(report.verdict).toBe('failed');
  expect(failed.map((check) => check.reason_code)).toEqual([reasonCode]);
  expect(failed[0]?.remediation).toMatch(/\w+ \w+/);
});

it('accepts simulated GPUs if the policy does', () => {
  const simulated = facts({
    inventory: inventory({ simulated: true }),
    policy: { acceptSimulated: true, checks: readCheckPolicy() },
  });
  expect(judge(simulated, 0).verdict).toBe('verified');
});

it('passes a rented host without a probe', () => {
  expect(judge(facts({ probe: null }), 0).verdict).toBe('verified');
});

it('withholds the verdict on an unreachable agent until the third failure in a row', () => {
  const lost = facts({ inventory: null, transportError: 'refused', probe: null });
  expect(judge(lost, 0).verdict).toBe('withheld');
  expect(judge(lost, TRANSPORT_FAILURES_ALLOWED - 1).verdict).toBe('withheld');
  expect(judge(lost, TRANSPORT_FAILURES_ALLOWED).verdict).toBe('failed');
});

it.each<[string, Facts['measured']['port'], RegExp]>([
  ['nothing observed', null, /^Start the agent and open port 20443 to the validator\.$/],
  ['no listener', { found: 'refused', sent: 'tls' }, /no program listens at port 20443/],
  [
    'a firewall',
    { found: 'no_answer', sent: 'tls' },
    /Open port 20443 .*firewall drops the packets/,
  ],
  [
    'an agent with plain HTTP',
    { found: 'http', sent: 'tls' },
    /Remove AGENT_TLS=off .*the port answers plain HTTP; the validator sent TLS/,
  ],
  [
    'a validator with plain HTTP',
    { found: 'tls', sent: 'http' },
    /Remove VALIDATOR_AGENT_TLS=off .*the port answers TLS; the validator sent plain HTTP/,
  ],
  ['another program', { found: 'other', sent: 'tls' }, /program at port 20443 .*neither with TLS/],
  ['a program that hangs', { found: 'silent', sent: 'tls' }, /20443.*does not answer/],
  ['a TLS program that is no agent', { found: 'tls', sent: 'tls' }, /20443.*no agent/],
])('names the real port and the cause in the remedy: %s', (_, port, remedy) => {
  const { executor, measured } = facts();
  const lost = facts({
    ...refused('AGENT_REFUSED'),
    refusal: null,
    executor: { ...executor, executor_ip_port: '20443' },
    measured: { ...measured, port },
  });
  const [failed] = judge(lost, TRANSPORT_FAILURES_ALLOWED).checks.filter(isBlocking);
  expect(failed).toMatchObject({ reason_code: 'AGENT_UNREACHABLE' });
  expect(failed?.remediation).toMatch(remedy);
  expect(failed?.remediation).not.toContain('8080');
});

it.each<[Refusal, string]>([
  ['AGENT_ANSWER_INVALID', 'reachability'],
  ['AGENT_REFUSED', 'reachability'],
  ['IDENTITY_CHANGED', 'executor_identity'],
  ['RESPONSE_UNSIGNED', 'reachability'],
  ['TLS_PIN_MISMATCH', 'reachability'],
  ['TLS_CERTIFICATE_EXPIRED', 'reachability'],
  ['TLS_UNTRUSTED', 'reachability'],
])('reports %s, and withholds the verdict as for an unreachable agent', (reason, checkId) => {
  const report = judge(facts(refused(reason)), 0);
  const failed = report.checks.filter((check) => !check.passed);
  expect(failed).toMatchObject([{ check_id: checkId, reason_code: reason }]);
  expect(failed[0]?.remediation).toMatch(/\w+ \w+/);
  expect(report.verdict).toBe('withheld');
  expect(judge(facts(refused(reason)), TRANSPORT_FAILURES_ALLOWED).verdict).toBe('failed');
});
