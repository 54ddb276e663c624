/** Tests closed months and their archives with the postings of real pods over two months. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Clock, parseIsoTime } from '#shared/runtime/clock.ts';
import {
  createMeteringScene,
  type MeteringScene,
} from '../../../../test/fakes/scenes/metering-scene.ts';
import { archiveMonth } from './archive.service.ts';
import { auditLedger } from './audit.service.ts';
import { exportLedger } from './ledger-export.ts';
import { closeMonths } from './month-close.service.ts';
import { monthOf } from './month-digest.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Four pods in turn pay for two months and a few days. */
const CREDIT_UUSD = 1_000_000_000_000;

let scene: MeteringScene;
let folder: string;
let months: string[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-archive-'));
  scene = await createMeteringScene({ signupCreditUusd: CREDIT_UUSD });
  months = [];
});
afterEach(async () => {
  await scene.close();
  rmSync(folder, { recursive: true });
});

const deps = () => {
  const { db, clock, random } = scene.market.ports;
  return { db, clock, random };
};
const audit = (from: string | null = null) =>
  scene.db.transaction().execute((tx) => auditLedger(tx, from));
const count = async (table: 'transfers' | 'ledger_groups' | 'billing_ticks') =>
  (await scene.db.selectFrom(table).selectAll().execute()).length;
/** All lines of the account's journal. */
async function journal() {
  const lines = [];
  for (let after: number | null = 0; after !== null; ) {
    const page = await scene.call('GET', `/users/me/ledger?limit=1000&after=${after}`);
    expect(page.status).toBe(200);
    lines.push(...page.body.lines);
    after = page.body.next_after;
  }
  return lines;
}

async function exported(from: string | null = null): Promise<string[]> {
  const lines: string[] = [];
  await scene.db
    .transaction()
    .execute((tx) => exportLedger(tx, 'jsonl', (line) => lines.push(line), from));
  return lines;
}

/** Runs the pods for some hours, with contact and a metering pass every hour. */
async function run(hours: number): Promise<void> {
  const { clock, central } = scene.market;
  for (let hour = 0; hour < hours; hour += 1) {
    await clock.advance(HOUR_MS);
    const seen = { seen_at: clock.now(), healthy_at: clock.now() };
    await scene.db.updateTable('pods').set(seen).where('state', '=', 'running').execute();
    await central.meterPods();
  }
}

/** Runs pods until the fifth day of the month after the next, and closes both months. A hold stays open meanwhile. */
async function twoMonths(): Promise<void> {
  const { clock } = scene.market;
  await scene.running();
  const begin = monthOf(clock.now());
  while (monthOf(clock.now()) === begin) await run(12);
  scene.host.arrives = 'pulling';
  await scene.rentOne();
  const second = monthOf(clock.now());
  while (monthOf(clock.now()) === second) await run(12);
  await run(5 * 24);
  const closed = await closeMonths(deps(), 3 * DAY_MS);
  months = closed.map(({ month }) => month);
  expect(months).toEqual([begin, second]);
}

it('closes the months that have ended, once and in order, with entries that verify', async () => {
  await twoMonths();
  expect(await closeMonths(deps(), 3 * DAY_MS)).toEqual([]);
  expect((await audit()).findings).toEqual([]);
  const rows = await scene.db.selectFrom('ledger_months').selectAll().orderBy('month').execute();
  expect(rows[1]?.first_seq).toBe((rows[0]?.last_seq ?? 0) + 1);
  const late = await scene.db
    .selectFrom('transfers')
    .innerJoin('ledger_groups', 'ledger_groups.id', 'group_id')
    .select('seq')
    .where('at_ms', '<', parseIsoTime(`${months[1]}-28T00:00:00Z`) ?? 0)
    .where('seq', '>', rows[1]?.last_seq ?? 0)
    .execute();
  expect(late).toEqual([]);
  const change = scene.db.updateTable('ledger_months').set({ transfers: 1 }).execute();
  await expect(change).rejects.toThrow('only grows');
});

it('archives months: verify, export, journal and balances are the same, and the database shrinks', async () => {
  await twoMonths();
  const [before, lines, whole] = [await audit(), await exported(), await journal()];
  const [transfers, ticks] = [await count('transfers'), await count('billing_ticks')];
  for (const month of months) await archiveMonth(deps(), month, folder);
  const after = await audit();
  expect(after).toEqual(before);
  expect(after.findings).toEqual([]);
  expect(await exported()).toEqual(lines);
  expect(await count('transfers')).toBeLessThan(transfers / 5);
  expect(await count('billing_ticks')).toBeLessThan(ticks / 5);
  // The journal begins after the archived months, with the balance that they left.
  const later = await journal();
  expect(later.length).toBeGreaterThan(0);
  expect(later).toEqual(whole.slice(-later.length));
  expect(later.at(-1).balance_usd).toBe((await scene.me()).balance);
  // Use goes on, and the hold from the archived month is resolved.
  scene.host.change([...scene.host.pods.keys()].at(-1) ?? '', { phase: 'running' });
  await scene.later(10_000);
  await run(3);
  expect((await audit()).findings).toEqual([]);
  expect((await journal()).at(-1).balance_usd).toBe((await scene.me()).balance);
  expect(readdirSync(folder).toSorted()).toEqual(months.map((month) => `ledger-${month}.jsonl.gz`));
});

it('rejects months that are not closed or not next, and a deletion of rows that no archive contains', async () => {
  await twoMonths();
  await expect(archiveMonth(deps(), '2099-01', folder)).rejects.toThrow('2099-01 is not closed');
  await expect(archiveMonth(deps(), months[1] ?? '', folder)).rejects.toThrow(
    `archive ${months[0]} first`,
  );
  await archiveMonth(deps(), months[0] ?? '', folder);
  for (const table of ['transfers', 'ledger_groups', 'billing_ticks'] as const) {
    await expect(scene.db.deleteFrom(table).execute()).rejects.toThrow('only grows');
  }
});

it('reports a missing, moved or changed archive with its name, and checks the rest of the ledger', async () => {
  await twoMonths();
  const { file } = await archiveMonth(deps(), months[0] ?? '', folder);
  const intact = readFileSync(file);
  const text = gunzipSync(intact).toString();
  const changed = text.replace(
    /"amount_uusd":(\d)/,
    (_, digit) => `"amount_uusd":${9 - Number(digit)}`,
  );
  const damages = [
    intact.subarray(0, intact.length / 2),
    gzipSync(changed),
    gzipSync(text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1)),
    gzipSync('{}\n'),
  ];
  for (const damage of damages) {
    writeFileSync(file, damage);
    const { findings } = await audit();
    expect(findings).toContainEqual(
      expect.objectContaining({ rule: 'I19', where: `archive ${file}` }),
    );
    expect(findings.filter(({ rule }) => rule === 'I15')).toEqual([]);
    await expect(exported()).rejects.toThrow(file);
  }
  rmSync(file);
  expect((await audit()).findings).toEqual([
    { rule: 'I19', where: `archive ${file}`, what: expect.stringContaining('ENOENT') },
  ]);
  const moved = join(folder, 'moved');
  writeFileSync(file, intact);

  mkdirSync(moved);
  renameSync(file, join(moved, basename(file)));
  expect((await audit(moved)).findings).toEqual([]);
});

it('continues after an interruption at any point, and loses nothing', async () => {
  await twoMonths();
  const [month = ''] = months;
  const before = await audit();
  const lines = await exported();
  let interruptions = 0;
  for (let steps = 1; ; steps += 1) {
    const { clock } = deps();
    let left = steps;
    // The archive reads the monotonic clock between two transactions.
    const stopping: Clock = {
      ...clock,
      monotonicMs() {
        left -= 1;
        if (left < 0) throw new Error('interrupted');
        return clock.monotonicMs();
      },
    };
    writeFileSync(join(folder, `ledger-${month}.jsonl.gz.partial`), 'left by a kill');
    const archived = archiveMonth({ ...deps(), clock: stopping }, month, folder);
    const error = await archived.then(() => null, String);
    expect(await audit()).toEqual(before);
    expect(await exported()).toEqual(lines);
    if (error === null) break;
    expect(error).toContain('interrupted');
    interruptions += 1;
  }
  expect(interruptions).toBeGreaterThanOrEqual(2);
  expect((await journal()).at(-1).balance_usd).toBe((await scene.me()).balance);
});
