/** The real command that archives a month, killed at several points. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseIsoTime, systemClock } from '#shared/runtime/clock.ts';
import {
  createPostgresDatabase,
  onPostgres,
  runSql,
} from '../../../../test/fakes/scenes/central-database.ts';
import { startCommand } from '../../../../test/fakes/scenes/command-process.ts';
import { openCentralDatabase } from '../../platform/database/database.ts';
import type { Database } from '../../platform/database/tables.ts';
import { closeMonths, LEAST_CLOSE_MS } from './month-close.service.ts';

/** The command deletes 200 groups in each transaction, so that a kill can hit any of a hundred. */
const GROUPS = 20_000;
const ROWS_PER_INSERT = 1_000;
const MONTH = '2026-08';
const BEGIN_MS = parseIsoTime(`${MONTH}-01T00:00:00Z`) ?? 0;

let folder: string;
let target: string;
let db: Database;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-archive-kill-'));
  target = onPostgres() ? await createPostgresDatabase() : join(folder, 'central.db');
  db = await openCentralDatabase(target);
  await fillMonth();
});
afterEach(async () => {
  await db.destroy();
  rmSync(folder, { recursive: true, force: true });
});

/** Posts a micro-dollar in each group. The groups are of a kind that the command deletes. */
async function fillMonth(): Promise<void> {
  for (let from = 1; from <= GROUPS; from += ROWS_PER_INSERT) {
    const ids = Array.from({ length: ROWS_PER_INSERT }, (_, at) => from + at);
    const groups = ids.map((id) => ({
      id,
      cause_type: 'referral',
      cause_id: `cause-${id}`,
      is_once: 1 as const,
      actor: 'system',
      request_id: null,
      at_ms: BEGIN_MS + id,
    }));
    const transfers = ids.map((id) => ({
      seq: id,
      group_id: id,
      debit_id: 'external:topup',
      credit_id: 'user:renter',
      amount_uusd: 1,
      kind: 'direct' as const,
      pending_seq: null,
    }));
    await db.insertInto('ledger_groups').values(groups).execute();
    await db.insertInto('transfers').values(transfers).execute();
  }
  const account = { debits_posted: 0, credits_posted: 0, debits_pending: 0 };
  await db
    .insertInto('ledger_accounts')
    .values([
      { ...account, id: 'external:topup', debits_posted: GROUPS },
      { ...account, id: 'user:renter', credits_posted: GROUPS },
    ])
    .execute();
  await runSql(db, 'analyze');
}

const ledger = (...words: string[]) =>
  startCommand('validator/main.ts', ['ledger', ...words], { CENTRAL_DATABASE: target });
const archive = () => ledger('archive', MONTH, folder);

/** Exit code and output of a command, without its progress, which depends on the load of the host. */
async function resultOf({ ended }: ReturnType<typeof ledger>) {
  const { code, output } = await ended;
  return { code, output: output.replaceAll(/^… .*\n/gm, '') };
}

async function countOf(table: 'transfers' | 'ledger_archives'): Promise<number> {
  const row = await db
    .selectFrom(table)
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** Kills the command as soon as the condition is true. Fails if the command ends before. */
async function killWhen(isReached: () => Promise<boolean>): Promise<void> {
  const running = archive();
  let isEnded = false;
  void running.ended.finally(() => {
    isEnded = true;
  });
  while (!isEnded && !(await isReached())) await pause(1);
  running.kill();
  expect(await resultOf(running)).toEqual({ code: null, output: '' });
}

it('continues after a SIGKILL at any point, and the ledger verifies after each', async () => {
  const file = join(folder, `ledger-${MONTH}.jsonl.gz`);
  const leftAtMost = (transfers: number) => async () => (await countOf('transfers')) <= transfers;
  expect(await closeMonths({ db, clock: systemClock }, LEAST_CLOSE_MS)).not.toEqual([]);
  const whole = await resultOf(ledger('verify'));
  expect(whole).toMatchObject({ code: 0, output: expect.stringContaining(`${GROUPS} transfers`) });

  const points: [string, () => Promise<boolean>][] = [
    ['the file is being written', async () => existsSync(`${file}.partial`)],
    ['the file is complete', async () => existsSync(file)],
    ['the archive is recorded', async () => (await countOf('ledger_archives')) === 1],
    ['some rows are deleted', leftAtMost(GROUPS * 0.9)],
    ['half the rows are deleted', leftAtMost(GROUPS / 2)],
    ['most rows are deleted', leftAtMost(GROUPS / 5)],
  ];
  for (const [point, isReached] of points) {
    await killWhen(isReached);
    expect({ point, ...(await resultOf(ledger('verify'))) }).toEqual({ point, ...whole });
  }
  expect(await countOf('transfers')).toBeGreaterThan(0);

  expect(await archive().ended).toMatchObject({ code: 0 });
  expect(await countOf('transfers')).toBe(0);
  expect(await resultOf(ledger('verify'))).toEqual(whole);
});
