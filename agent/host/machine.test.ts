import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { claimHome, lockExecutor, type MachineIds, otherMachineText } from './machine.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-machine-'));
afterAll(() => rmSync(folder, { recursive: true }));

const HERE: MachineIds = { system: 'a', hardware: '1' };
const THERE: MachineIds = { system: 'b', hardware: '2' };

function claim(home: string, present: MachineIds, hasPods = true): void {
  claimHome(home, { present, hasPods: () => hasPods, random: systemRandom });
}

it('refuses a home with pods that another machine last used', () => {
  const home = mkdtempSync(join(folder, 'home-'));
  claim(home, HERE);
  claim(home, HERE);
  expect(() => claim(home, THERE)).toThrow(ConfigError);
  expect(otherMachineText(home, THERE)).toContain(`delete ${join(home, 'machine.json')}`);
  rmSync(join(home, 'machine.json'));
  claim(home, THERE);
  expect(() => claim(home, HERE)).toThrow('every pod runs twice');
  // Without pods, nothing can run twice.
  claim(home, HERE, false);
  claim(home, HERE);
});

it('accepts a home whose record is damaged', () => {
  const home = mkdtempSync(join(folder, 'home-'));
  for (const text of ['', '\0\0', '{}']) {
    writeFileSync(join(home, 'machine.json'), text);
    claim(home, HERE);
  }
});

it.each<[string, MachineIds]>([
  ['that was installed again', { system: 'b', hardware: '1' }],
  ['whose hardware was exchanged', { system: 'a', hardware: '2' }],
  ['whose hardware id cannot be read', { system: 'b', hardware: null }],
  ['whose ids cannot be read', { system: null, hardware: null }],
])('accepts the home of a machine %s', (_, present) => {
  const home = mkdtempSync(join(folder, 'home-'));
  claim(home, HERE);
  claim(home, present);
});

it('lets one agent of a machine use an executor id', async () => {
  const id = systemRandom.uuid();
  const first = await lockExecutor(id);
  await expect(lockExecutor(id)).rejects.toThrow(`AGENT_EXECUTOR_ID ${id} runs on this machine`);
  (await lockExecutor(systemRandom.uuid())).close();
  first.close();
  (await lockExecutor(id)).close();
});
