import { expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { readKnownCheckPolicy } from '../checks/checks.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../weights/weight-policy.ts';
import { runCoverageCommand } from './coverage-command.ts';

const AT = '2027-01-15T08:00:00Z';
const checks = readKnownCheckPolicy();
const weights = readWeightPolicy(DEFAULT_POLICY_FILE);
const run = (change: Partial<typeof checks> = {}, at: string | null = AT, word = 'coverage') =>
  runCoverageCommand({ words: [word], at, checks: { ...checks, ...change }, weights }, 0);

it('counts at least 34 cheats under the default policy', () => {
  const [, counted, all] = /^counts (\d+) of (\d+)$/m.exec(run()) ?? [];
  expect(Number(counted)).toBeGreaterThanOrEqual(34);
  expect(run().trimEnd().split('\n').at(-1)).toBe(`counts ${counted} of ${all}`);
});

it('depends on the policy and on the date', () => {
  const line = (text: string, cheat: string) =>
    text.split('\n').find((each) => each.includes(`${cheat}:`));
  const cores = 'reports more processor cores than its kernel';
  expect(line(run(), cores)).toMatch(/^fails .*cpu_truth CPU_OVERSTATED$/);
  expect(line(run({}, '2026-11-01T00:00:00Z'), cores)).toMatch(/^recorded /);
  const observed = { ...checks.modes, proof_age: { mode: 'shadow' as const, from: null } };
  expect(line(run(), 'computes slowly on its cards')).toMatch(/^no weight /);
  expect(line(run({ modes: observed }), 'computes slowly on its cards')).toMatch(/^recorded /);
  expect(line(run({ egress_image: null }), 'blocks outgoing connections')).toMatch(/^passes .*-$/);
});

it('names overdue decisions', () => {
  expect(run()).toMatch(/^shadow +power_limit, until 2027-06-01: Providers lower/m);
  expect(run({}, '2027-06-01T00:00:00Z')).toMatch(/power_limit, until 2027-06-01 \(overdue\): /);
});

it('accepts a date, which is its beginning in UTC', () => {
  expect(run({}, '2027-01-15')).toBe(run({}, '2027-01-15T00:00:00Z'));
});

it('rejects other words and dates', () => {
  expect(() => run({}, AT, 'cover')).toThrow(ConfigError);
  expect(() => run({}, 'soon')).toThrow('--at soon: not an ISO 8601 time');
  expect(() => run({}, '2027-02-30')).toThrow('or a date such as 2027-01-15');
});

it('states why and until when a check of the default policy only records failures', () => {
  const unexplained = Object.entries(checks.modes).filter(
    ([, { mode, why, until }]) => mode !== 'enforce' && (why === undefined || until === undefined),
  );
  expect(unexplained).toEqual([]);
});
