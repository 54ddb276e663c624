import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { openCentralDatabase } from '../platform/database/database.ts';
import { runProviderCommand } from './provider-command.ts';

const HOTKEY = 'hotkey of north';
let folder: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-provider-'));
  const db = await openCentralDatabase(join(folder, 'central.db'));
  const empty = { coldkey: null, email: null, password_hash: null };
  await db
    .insertInto('providers')
    .values({
      id: 'north',
      hotkey: HOTKEY,
      ...empty,
      chat_user_id: null,
      chat_username: null,
      opted_in: 1,
      banned_at: null,
      created_at: 0,
      updated_at: 0,
    })
    .execute();
  await db.destroy();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function run(words: string, reason: string | null = null): Promise<object[]> {
  const lines: string[] = [];
  const database = ['--database', join(folder, 'central.db')];
  const args = [...words.split('|'), ...(reason === null ? [] : ['--reason', reason]), ...database];
  const command = { args, operator: 'ann', usualDatabase: '/nowhere/central.db' };
  const print = (text: string) => void lines.push(text);
  await runProviderCommand(command, { clock: createManualClock(), random: systemRandom, print });
  return lines.map((line) => JSON.parse(line) as object);
}

it('bans and unbans providers and lists the audit entries, on the database of a central API', async () => {
  expect(await run(`ban|${HOTKEY}`, 'fraud')).toEqual([
    { hotkey: HOTKEY, banned: true, changed: true },
  ]);
  expect(await run(`unban|${HOTKEY}`, 'an error')).toEqual([
    { hotkey: HOTKEY, banned: false, changed: true },
  ]);
  expect(await run('audit')).toMatchObject([
    { operator: 'ann', action: 'provider.unban', subject_id: 'north', reason: 'an error' },
    { action: 'provider.ban', reason: 'fraud', at: '2027-01-15T08:00:00.000000' },
  ]);
});

it.each([
  [`ban|${HOTKEY}`, null, 'provider ban needs --reason TEXT'],
  [`ban|${HOTKEY}`, '  ', 'A reason of 1 to 500 characters is required'],
  ['ban|unknown', 'fraud', 'No provider has the hotkey unknown'],
  ['ban', null, 'provider ban needs HOTKEY\nprovider ban needs --reason TEXT'],
  [`forgive|${HOTKEY}`, 'fraud', 'unknown command provider forgive'],
])('rejects the command %s with the reason %j', async (words, reason, message) => {
  await expect(run(words, reason)).rejects.toThrow(message);
  expect(await run('audit')).toEqual([]);
});
