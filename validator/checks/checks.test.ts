import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { factsOf, POLICY } from '../../test/fixtures/check-facts.ts';
import { CheckPolicy, readCheckPolicy } from './check-policy.ts';
import { CHECKS, readKnownCheckPolicy } from './checks.ts';
import { judgeAll } from './verdict.ts';

it('lists each check once, with a remedy for each of its reasons', () => {
  expect(new Set(CHECKS.map(({ id }) => id)).size).toBe(CHECKS.length);
  const empty = CHECKS.filter(({ remedies }) =>
    Object.values(remedies).some((text) => text === ''),
  );
  expect([empty, CHECKS.filter(({ remedies }) => Object.keys(remedies).length === 0)]).toEqual([
    [],
    [],
  ]);
});

it('documents every field of the policy in the README', () => {
  const readme = readFileSync('validator/README.md', 'utf8');
  const fields = Object.keys(CheckPolicy.shape);
  expect(fields.filter((field) => !readme.includes(`\`${field}\``))).toEqual([]);
});

it('passes a genuine host whose agent does not report every source', () => {
  const { report } = judgeAll(factsOf(), 0);
  expect(report.checks.filter((check) => !check.passed)).toEqual([]);
  expect(report.checks.find(({ check_id }) => check_id === 'cpu_truth')?.message).toBe('unknown');
});

it('rejects a policy with invalid entries', () => {
  const wrong = { ...POLICY, modes: { clock: { mode: 'sometimes', from: null } } };
  expect(CheckPolicy.safeParse(wrong).success).toBe(false);
  expect(() => readCheckPolicy('/nowhere.json')).toThrow('/nowhere.json');
});

it('accepts a policy without images of templates', () => {
  const images = (length: number) => Array.from({ length }, (_, n) => `debian:${n}`);
  const accepts = (template_images: string[]) =>
    CheckPolicy.safeParse({ ...POLICY, template_images }).success;
  expect([0, 16, 17].map((length) => accepts(images(length)))).toEqual([true, true, false]);
});

it('names each missing field of a policy, and an example', () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-policy-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'policy.json');
  writeFileSync(path, '{}');
  expect(() => readCheckPolicy(path)).toThrow(/^ {2}min_free_disk_gib: the field is missing$/m);
  expect(() => readCheckPolicy(path)).not.toThrow('undefined');
  expect(() => readCheckPolicy(path)).toThrow(
    'shared/check/default-check-policy.json has an example of every field',
  );
});

it('rejects modes of unknown checks and reasons', () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-policy-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'policy.json');
  const line = { mode: 'enforce', from: null };
  const read = (modes: object) => {
    writeFileSync(path, JSON.stringify({ ...POLICY, modes }));
    return readKnownCheckPolicy(path).modes;
  };
  expect(readKnownCheckPolicy()).toEqual(readCheckPolicy());
  expect(read({ pow_cpu: line, 'pow_cpu POW_TOO_SLOW': line })).toHaveProperty('pow_cpu');
  expect(() => read({ pow_cup: line })).toThrow(`${path}: modes: "pow_cup" is neither`);
  expect(() => read({ pow_cup: line })).toThrow('did you mean "pow_cpu"?');
  expect(() => read({ pow_cup: line, pow_mme: line })).toThrow(/pow_cup.*\n.*pow_mme/);
  writeFileSync(path, JSON.stringify({ ...POLICY, max_gpu: 1 }));
  expect(() => readKnownCheckPolicy(path)).toThrow(
    'max_gpu: unknown field; did you mean max_gpus?',
  );
  expect(() => read({ 'clock POW_MISMATCH': line })).toThrow(ConfigError);
});
