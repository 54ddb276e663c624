import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createTestCentral } from '../../../test/fakes/scenes/central-fixture.ts';
import { listAudit } from '../platform/audit/audit.service.ts';
import { openCentralDatabase } from '../platform/database/database.ts';
import { runOperatorCommand } from './operator-command.ts';

let folder: string;
let email: string;
let accountId: string;
const file = () => join(folder, 'central.db');
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-operator-'));
  const central = await createTestCentral({ db: await openCentralDatabase(file()) });
  ({ email, id: accountId } = await central.signUp());
  await central.close();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function run(words: string, reason: string | null = null): Promise<object[]> {
  const lines: string[] = [];
  const rest = reason === null ? [] : ['--reason', reason];
  const args = [...words.split('|'), ...rest, '--database', file()];
  const command = { args, operator: 'ann', usualDatabase: '/nowhere/central.db' };
  const print = (text: string) => void lines.push(text);
  await runOperatorCommand(command, { clock: createManualClock(), random: systemRandom, print });
  return lines.map((line) => JSON.parse(line) as object);
}

async function audit() {
  const db = await openCentralDatabase(file());
  const entries = await listAudit(db, { limit: 10 });
  await db.destroy();
  return entries;
}

it('grants, lists and revokes the role, with an audit entry for each call', async () => {
  expect(await run(`grant|${email.toUpperCase()}`, 'runs support')).toMatchObject([
    { operator: true, changed: true },
  ]);
  expect(await run(`grant|${email}`, 'again')).toMatchObject([{ operator: true, changed: false }]);
  expect(await run('list')).toEqual([
    { id: accountId, email, since: '2027-01-15T08:00:00.000000' },
  ]);
  expect(await run(`revoke|${email}`, 'left')).toMatchObject([{ operator: false, changed: true }]);
  expect(await run('list')).toEqual([]);
  expect(await audit()).toMatchObject([
    { operator: 'ann', action: 'operator.revoke', subject_id: accountId, reason: 'left' },
    { action: 'operator.grant', reason: 'again' },
    { action: 'operator.grant', subject_type: 'account', reason: 'runs support' },
  ]);
});

it.each([
  ['grant|user1@example.com', null, 'operator grant needs --reason TEXT'],
  ['grant|user1@example.com', '  ', 'A reason of 1 to 500 characters is required'],
  ['grant|unknown@example.com', 'x', 'No account has the address unknown@example.com'],
  ['grant', null, 'operator grant needs EMAIL\noperator grant needs --reason TEXT'],
  ['promote|user1@example.com', 'x', 'unknown command operator promote'],
])('refuses %s with the reason %j', async (words, reason, message) => {
  await expect(run(words, reason)).rejects.toThrow(message);
  expect(await audit()).toEqual([]);
});
