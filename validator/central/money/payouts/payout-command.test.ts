import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import {
  createPostgresDatabase,
  onPostgres,
} from '../../../../test/fakes/scenes/central-database.ts';
import { earn } from '../../../../test/fakes/scenes/payout-scene.ts';
import { startProgram } from '../../../../test/fakes/scenes/program-process.ts';
import { createAccountPods } from '../../market/cut-off/cut-off.ts';
import { openCentralDatabase } from '../../platform/database/database.ts';
import type { Database } from '../../platform/database/tables.ts';
import { payoutKeyOf } from '../../providers/provider.service.ts';
import { auditLedger } from '../ledger/audit.service.ts';
import { balancesOf } from '../ledger/wallet.service.ts';
import { createPayoutJob } from './payout.job.ts';
import { createPayouts } from './payout.service.ts';
import { runPayoutCommand } from './payout-command.ts';
import { createSimulatedPayouts } from './simulated-payouts.ts';

const USD = 1_000_000;
const folder = mkdtempSync(join(tmpdir(), 'podwright-payout-'));
let target: string;
let db: Database;
beforeEach(async () => {
  target = onPostgres()
    ? await createPostgresDatabase()
    : join(folder, `${systemRandom.uuid()}.db`);
  db = await openCentralDatabase(target);
  for (const id of ['north', 'south']) {
    await db
      .insertInto('providers')
      .values({
        id,
        hotkey: `hotkey of ${id}`,
        coldkey: null,
        email: null,
        opted_in: 1,
        banned_at: null,
        created_at: 0,
        updated_at: 0,
        password_hash: null,
        chat_user_id: null,
        chat_username: null,
      })
      .execute();
  }
});
afterEach(async () => {
  await db.destroy();
  rmSync(folder, { recursive: true, force: true });
});

async function command(words: string, isPaid = true): Promise<object[]> {
  const lines: string[] = [];
  const clock = createManualClock();
  const print = (text: string) => void lines.push(text);
  const pods = createAccountPods({ clock, random: systemRandom });
  const ports = { clock, random: systemRandom, pods, payoutKeyOf, print };
  const place = { databaseFile: null, usualDatabase: target };
  await runPayoutCommand({ ...place, words: words.split(' '), isPaid }, ports);
  return lines.map((line) => JSON.parse(line));
}

it('requests a payout for each party that has earned enough, and lists them', async () => {
  await earn(db, { kind: 'provider', id: 'north' }, 12 * USD);
  await earn(db, { kind: 'provider', id: 'south' }, USD);
  const north = { party: 'provider:north', state: 'requested', amount_usd: 12 };
  expect(await command('run')).toMatchObject([
    { ...north, method: 'hotkey', address: 'hotkey of north', attempts: 0 },
    { party: 'provider:south', refused: 'too_little', payable_usd: 1 },
  ]);
  expect(await command('list')).toMatchObject([north]);
  expect(await command('run')).toMatchObject([{ refused: 'open' }, { refused: 'too_little' }]);
});

it.each([
  ['run', false, /CENTRAL_PAYOUTS is none/],
  ['walk', true, /unknown command payout walk/],
])('rejects payout %s (payout processor configured: %s)', async (words, isPaid, message) => {
  await expect(command(words, isPaid)).rejects.toThrow(message);
});

it('does not change a database of another schema', async () => {
  await db.updateTable('meta').set({ value: '1' }).where('name', '=', 'schema').execute();
  await expect(command('run')).rejects.toThrow(/has schema 1/);
});

it('pays once although a process is killed after its request, before the processor answers', async () => {
  await earn(db, { kind: 'provider', id: 'north' }, 12 * USD);
  const requester = await startProgram('test/fakes/faults/payout-requester.ts', 'sent', {
    PAYOUT_DATABASE: target,
    PAYOUT_PARTY: 'north',
  });
  await requester.end('SIGKILL');
  const account = 'provider:north';
  expect(await balancesOf(db, account)).toEqual({ posted: 12 * USD, pending: 12 * USD });
  const row = await db.selectFrom('payouts').selectAll().executeTakeFirstOrThrow();
  // Continues after the lease of the killed process has expired.
  const ports = { db, clock: createManualClock(row.due_at), random: systemRandom };
  const log = createLog({ name: 'test', level: 'silent' });
  const processor = createSimulatedPayouts(ports);
  const payouts = createPayouts({ ...ports, pods: createAccountPods(ports), payoutKeyOf });
  await createPayoutJob({ ...ports, log, processor, payouts }).runOnce();
  expect(await db.selectFrom('payouts').select('state').execute()).toEqual([{ state: 'paid' }]);
  expect(await db.selectFrom('simulated_payouts').select('asked').execute()).toEqual([
    { asked: 2 },
  ]);
  expect(await balancesOf(db, account)).toEqual({ posted: 0, pending: 0 });
  expect((await balancesOf(db, 'external:payout')).posted).toBe(12 * USD);
  expect((await db.transaction().execute(auditLedger)).findings).toEqual([]);
});
