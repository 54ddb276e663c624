import { expect, it } from 'vitest';
import { findingsOf } from '#shared/check/doctor.ts';
import { parseConfig } from '#shared/runtime/config.ts';
import { rootKeySet } from '../../test/fixtures/root-key-set.ts';
import { NOW_MS, validatorKey } from '../../test/fixtures/update-manifest.ts';
import { VALIDATOR_CONFIG } from '../config.ts';
import { VALIDATOR_SERVICE_CHECKS } from './validator.check.ts';
import type { ValidatorFacts } from './validator-facts.ts';

const DAY_MS = 86_400_000;
const config = parseConfig(VALIDATOR_CONFIG, {
  VALIDATOR_CENTRAL_URL: 'http://127.0.0.1:8000/api',
  VALIDATOR_CENTRAL_HOTKEY: '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
});

const factsOf = (problem: { problem: string; timedOut?: true }): ValidatorFacts => ({
  config,
  nowMs: NOW_MS,
  key: problem,
  home: problem,
  ledger: problem,
  storeFile: problem,
  keySet: problem,
  policies: problem,
  metagraph: problem,
  probeAccounts: problem,
  sshClient: problem,
  central: problem,
  centralHotkey: problem,
  gateway: problem,
  registry: problem,
  time: { synchronised: problem, skew: null, stored: problem },
  disk: problem,
});

it('reports facts that were not read in time as unknown, with their remedies', () => {
  const late = factsOf({ problem: 'no answer within 10000 ms', timedOut: true });
  const findings = findingsOf(VALIDATOR_SERVICE_CHECKS, late);
  expect(findings.map(({ id, status, timed_out }) => ({ id, status, timed_out }))).toEqual(
    VALIDATOR_SERVICE_CHECKS.map(({ id }) => ({ id, status: 'unknown', timed_out: true })),
  );
  expect(findings.filter(({ remedy }) => remedy === null)).toEqual([]);
});

it('reports facts that cannot be read at all as failures', () => {
  const findings = findingsOf(VALIDATOR_SERVICE_CHECKS, factsOf({ problem: 'ECONNREFUSED' }));
  const failed = findings.filter(({ status }) => status === 'fail').map(({ id }) => id);
  expect(failed).toEqual([
    'key',
    'ledger',
    'ledger-file',
    'policies',
    'metagraph',
    'probe-accounts',
    'ssh-client',
    'central',
    'registry',
  ]);
});

it.each([
  ['missing', { place: 'missing', text: 'it was deleted' }, 'fail'],
  ['not created yet', { place: 'absent' }, 'ok'],
] as const)('reports an evidence store that is %s in both of its checks', (_, place, status) => {
  const facts = {
    ...factsOf({ problem: '' }),
    ledger: { value: null },
    storeFile: { value: place },
  };
  const findings = findingsOf(VALIDATOR_SERVICE_CHECKS, facts);
  const ofStore = findings.filter(({ id }) => id === 'ledger' || id === 'ledger-file');
  expect(ofStore.map((finding) => finding.status)).toEqual([status, status]);
});

it('requires an ssh client only for hidden rentals, and counts their accounts', () => {
  const found = (change: Partial<ValidatorFacts>) =>
    findingsOf(VALIDATOR_SERVICE_CHECKS, { ...factsOf({ problem: '' }), ...change })
      .filter(({ id }) => id === 'probe-accounts' || id === 'ssh-client')
      .map(({ status, finding }) => `${status}: ${finding}`);
  expect(found({ probeAccounts: null, sshClient: null })).toEqual([
    expect.stringMatching(/^warn: no file is named/),
    'ok: not needed: no hidden rentals are made',
  ]);
  const none = { problem: 'there is no ssh client in /usr/bin' };
  expect(found({ probeAccounts: { value: 1 }, sshClient: none })).toEqual([
    'ok: 1 account',
    'fail: there is no ssh client in /usr/bin',
  ]);
});

it.each([
  ['ok', 'agents trust the keys of their configuration', 0, null],
  ['ok', 'key set 1 expires 2', 0, rootKeySet({ expires_at: NOW_MS + 90 * DAY_MS })],
  ['warn', 'key set 1 expires 2', 31 * DAY_MS, rootKeySet({ expires_at: NOW_MS + 60 * DAY_MS })],
  ['fail', 'key set 1 is not valid', 30 * DAY_MS, rootKeySet()],
])('reports the key set as %s: %s', (status, words, laterMs, keySet) => {
  const key = { ss58: validatorKey.hotkey, not_before: 0, not_after: keySet?.expires_at ?? 0 };
  const keys = [{ ...key, key_id: 'own', roles: ['validator-control' as const] }];
  const facts: ValidatorFacts = {
    ...factsOf({ problem: '' }),
    nowMs: NOW_MS + laterMs,
    key: { value: validatorKey.hotkey },
    keySet: { value: keySet === null ? null : { ...keySet, keys } },
  };
  const found = findingsOf(VALIDATOR_SERVICE_CHECKS, facts).find(({ id }) => id === 'key-set');
  expect(found).toMatchObject({ status, finding: expect.stringContaining(words) });
});
