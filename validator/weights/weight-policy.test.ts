import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { H100, rewardPolicy } from '../../test/fixtures/cycle-set.ts';
import { MACHINE_CATALOGUE } from '../central/market/executors/machine-catalogue.ts';
import { readCheckPolicy } from '../checks/check-policy.ts';
import {
  DEFAULT_POLICY_FILE,
  policyHashOf,
  rateOf,
  readWeightPolicy,
  requireListedModels,
} from './weight-policy.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-policy-'));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(content: unknown): string {
  const path = join(folder, 'policy.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

it('ships with a policy that rates every card of the market', () => {
  const policy = readWeightPolicy(DEFAULT_POLICY_FILE);
  const unrated = MACHINE_CATALOGUE.filter(({ name }) => rateOf(policy, name) === 0);
  expect(unrated).toEqual([]);
});

it('ships with policies in which every rated model is listed, and rejects a rate of another model', () => {
  const { models } = readCheckPolicy();
  requireListedModels(readWeightPolicy(DEFAULT_POLICY_FILE), models);
  const other = rewardPolicy({ rates_uusd: { [H100]: 1, 'NVIDIA X1': 1 } });
  expect(() => requireListedModels(other, models)).toThrow(/does not list: NVIDIA X1$/);
});

it('has the same hash for any order and white space of its file', () => {
  const policy = rewardPolicy();
  const turned = Object.fromEntries(Object.entries(policy).reverse());
  expect(policyHashOf(readWeightPolicy(fileOf(turned)))).toBe(policyHashOf(policy));
  expect(policyHashOf(rewardPolicy({ version: 2 }))).not.toBe(policyHashOf(policy));
});

it.each<[string, unknown, RegExp]>([
  ['no JSON', '{', /policy\.json: /],
  [
    'pools that do not add up',
    { ...rewardPolicy(), pools_ppm: { burn: 1, mining: 1, idle: 1 } },
    /do not add up/,
  ],
  ['a fraction', { ...rewardPolicy(), rates_uusd: { [H100]: 0.5 } }, /rates_uusd\.NVIDIA H100/],
  ['an unknown field', { ...rewardPolicy(), bonus: 1 }, /bonus/],
  ['a field too few', { ...rewardPolicy(), live_floor: undefined }, /live_floor/],
  ['a policy of an older version', { ...rewardPolicy(), rewards: undefined }, /rewards: Missing/],
  [
    'a fee that returns in full',
    rewardPolicy({ linked_chat_bonus_ppm: 700_000 }),
    /fee_return_ppm/,
  ],
  ['too short a window', { ...rewardPolicy(), window_cycles: 4 }, /window_cycles/],
])('rejects %s and names the field', (_, content, message) => {
  const reading = () => readWeightPolicy(fileOf(content));
  expect(reading).toThrow(ConfigError);
  expect(reading).toThrow(message);
});
