import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readSide } from './sides.ts';

const SCENARIOS = join(import.meta.dirname, '../scenarios');
const folder = mkdtempSync(join(tmpdir(), 'sides-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('side of a comparison', () => {
  it('is a weight policy, also of an older version, with the given scenario', () => {
    const side = readSide(
      join(SCENARIOS, 'policies/last-release.json'),
      join(SCENARIOS, 'price-war.json'),
    );
    expect(side).toMatchObject({ kind: 'run', scenario: { name: 'price-war' } });
    expect(side.kind === 'run' && side.weightPolicy.rewards).toBeUndefined();
  });

  it('is a scenario with the weight policy of today', () => {
    const side = readSide(join(SCENARIOS, 'regional-outage.json'));
    expect(side).toMatchObject({ kind: 'run', scenario: { name: 'regional-outage' } });
    expect(side.kind === 'run' && side.weightPolicy.rewards).toBeDefined();
  });

  it('is refused with the reason', () => {
    const file = join(folder, 'a.json');
    expect(() => readSide(file)).toThrow(`there is no file ${file}`);
    expect(() => readSide(folder)).toThrow('has 0 runs');
    writeFileSync(file, '{"pools_ppm": {}}');
    expect(() => readSide(file)).toThrow('is not a policy for weights');
    writeFileSync(file, '{"version": 1}');
    expect(() => readSide(file)).toThrow('supply');
  });
});
