/**
 * Metering ticks over 20,000 running pods of 2,000 accounts, including thresholds, auto top-ups and referrals, on
 * SQLite with every commit synced to disk: ticks that post every pod, and ticks that post only what is due. The
 * reference reads the same meters in one statement, and writes the same rows in as many commits. Also the growth of the
 * database by one pod and day.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '#shared/runtime/clock.ts';
import { type DatabaseSync, openSqlite } from '#shared/runtime/sqlite.ts';
import { POSTING_INTERVAL_MS } from '../../validator/central/money/metering/posting.plan.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import { createManualClock } from '../fakes/manual-clock.ts';
import { handleOf } from '../fakes/scenes/central-database.ts';
import { createTestCentral } from '../fakes/scenes/central-fixture.ts';
import { collectGarbage } from '../measure/collect-garbage.ts';
import { median, type Row, ratioAtMost, valueAtMost } from '../measure/row.ts';
import { copiedFile, recordCommits, writeBare } from './bare-writes.ts';
import { fillTable } from './fill-table.ts';
import { ledgerGrowth } from './ledger-growth.ts';
import { seedMarket } from './market-seed.ts';

const PODS = 20_000;
const ACCOUNTS = 2_000;
const TICKS = 5;
const TICK_MS = 60_000;
const MOST_RATIO = 2;
/** Longest time for which a tick may keep the event loop from requests. */
const LONGEST_DELAY_MS = 50;
/** Resolution of the measured delays; a delay of this length is none. */
const DELAY_RESOLUTION_MS = 5;
const IDLE_MS = 2_000;
const NS_PER_MS = 1_000_000;
const START_MS = 1_800_000_000_000;
const CREDIT_UUSD = 1_000_000_000;
/** One of this many accounts has a low balance and receives a warning. */
const ONE_LOW_OF = 100;
/** Balance of those accounts in micro-dollars: more than the ticks charge. */
const LOW_UUSD = 20_000_000;
const ONE_TOPPED_UP_OF = 5;
const ONE_BROUGHT_OF = 10;
/** Meters with the state of their pods and the balances of their accounts, as a tick reads them. */
const BARE_READ = `select usage_meters.*, seen_at, healthy_at, removal_at, max_spend_uusd, idle_stop_at,
    paid.debits_posted, paid.credits_posted, paid.debits_pending,
    granted.debits_posted, granted.credits_posted, granted.debits_pending
  from usage_meters join pods on pods.id = pod_id
  left join ledger_accounts as paid on paid.id = 'user:' || usage_meters.account_id
  left join ledger_accounts as granted on granted.id = 'granted:' || usage_meters.account_id
  where is_billable = 1 order by usage_meters.account_id, pod_id`;

function seed(db: DatabaseSync): void {
  const account = `'account-' || (i % ${ACCOUNTS})`;
  const executor = '(select id from executors limit 1)';
  const provider = '(select provider_id from executors limit 1)';
  const credit = `case when i % ${ONE_LOW_OF} = 0 then ${LOW_UUSD} else ${CREDIT_UUSD} end`;
  const money = { id: `'user:account-' || i`, credits_posted: credit };
  fillTable(
    db,
    'accounts',
    { id: `'account-' || i`, email_norm: `i`, referral_code: 'i' },
    ACCOUNTS,
  );
  fillTable(db, 'ledger_accounts', money, ACCOUNTS);
  const topUp = { account_id: `'account-' || i`, id: `i`, enabled: '1', status: `'idle'` };
  const amounts = { threshold_uusd: '1', amount_uusd: '1000000', payment_method_id: `'sim_ok'` };
  fillTable(db, 'auto_topups', { ...topUp, ...amounts }, ACCOUNTS / ONE_TOPPED_UP_OF);
  const brought = { account_id: `'account-' || i`, referrer_id: `'account-${ACCOUNTS - 1}'` };
  fillTable(db, 'referrals', brought, ACCOUNTS / ONE_BROUGHT_OF);
  const pod = { id: `'pod-' || i`, account_id: account, executor_id: executor };
  const life = { state: `'running'`, seen_at: String(START_MS + 3_600_000) };
  fillTable(db, 'pods', { ...pod, ...life, gpu_count: '8' }, PODS);
  const meter = { pod_id: `'pod-' || i`, account_id: account, provider_id: provider };
  const rate = { price_uusd_per_gpu_hour: '2000000', gpu_count: '8', is_billable: '1' };
  const times = { since_ms: String(START_MS), settled_to_ms: String(START_MS) };
  const place = { executor_id: executor, state: `'running'`, ...rate, ...times };
  fillTable(db, 'usage_meters', { ...meter, ...place }, PODS);
}

/** Milliseconds of a tick without any work on the rows. */
function bareTick(file: DatabaseSync, changes: readonly Uint8Array[]): number {
  const beganMs = performance.now();
  let rows = 0;
  for (const _ of file.prepare(BARE_READ).iterate()) rows += 1;
  for (const change of changes) writeBare({ file }, change);
  if (rows !== PODS) throw new Error(`${rows} meters`);
  return performance.now() - beganMs;
}

export async function metering(): Promise<Row[]> {
  return [
    ...(await ticks('that posts every pod', 1)),
    ...(await ticks('between postings', POSTING_INTERVAL_MS)),
    ...(await ledgerGrowth()),
  ];
}

/** Duration and longest event loop delay of ticks, with this interval of postings. */
async function ticks(name: string, meterPostingMs: number): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  try {
    await createSeeded(join(folder, 'central.db'));
    return await compare(folder, name, meterPostingMs);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function createSeeded(file: string): Promise<void> {
  const db = await openCentralDatabase(file);
  await seedMarket(db, 1);
  await db.destroy();
  const side = openSqlite(file);
  seed(side);
  side.close();
}

/** Each tick is recorded on one copy of the database, measured on another, and written bare to a third. */
async function compare(folder: string, name: string, meterPostingMs: number): Promise<Row[]> {
  const copy = (to: string) => copiedFile(join(folder, 'central.db'), join(folder, to));
  const clock = createManualClock(START_MS);
  const settings = { clock, payments: 'simulated', meterPostingMs } as const;
  const recorder = recordCommits(copy('recorded'));
  const recorded = await createTestCentral({ db: recorder.db, ...settings });
  const db = handleOf(copy('ours'));
  const ours = await createTestCentral({ db, ...settings });
  const bare = copy('reference');
  const took: number[] = [];
  const reference: number[] = [];
  const delays: number[] = [];
  const startChanges = recorder.take();
  for (const change of startChanges) writeBare({ file: bare }, change);
  const idleMs = await longestDelay(() => systemClock.sleep(IDLE_MS));
  for (let round = 0; round < TICKS; round += 1) {
    await clock.advance(TICK_MS);
    await recorded.central.meterPods();
    reference.push(bareTick(bare, recorder.take()));
    collectGarbage();
    const beganMs = performance.now();
    delays.push(await longestDelay(ours.central.meterPods));
    took.push(performance.now() - beganMs);
  }
  await requireMetered(db, meterPostingMs === 1);
  await recorded.close();
  await ours.close();
  bare.close();
  const against = 'a bare read of the meters, the same rows and commits';
  const measured = { ours: median(took), reference: median(reference) };
  const delayed = { ours: Math.max(...delays), reference: idleMs };
  return [
    ratioAtMost(`metering tick, 20,000 pods, ${name}`, 'ms', against, measured, MOST_RATIO),
    valueAtMost(
      `event loop delay in ${TICKS} such ticks`,
      'ms',
      'the same process without a tick',
      delayed,
      LONGEST_DELAY_MS,
    ),
  ];
}

/** Throws unless the ticks have posted as many settlements, and warned as many accounts, as they must. */
async function requireMetered(db: Database, isEach: boolean): Promise<void> {
  const written = await db.selectFrom('billing_ticks').select('pod_id').execute();
  if (isEach ? written.length !== PODS * TICKS : written.length >= PODS)
    throw new Error(`${written.length} settlements`);
  const warned = await db.selectFrom('low_balance_marks').select('account_id').execute();
  if (warned.length !== ACCOUNTS / ONE_LOW_OF) throw new Error(`${warned.length} accounts warned`);
}

/** Longest time in milliseconds for which the event loop was blocked during `work`. */
async function longestDelay(work: () => Promise<unknown>): Promise<number> {
  const delays = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  delays.enable();
  await systemClock.sleep(2 * DELAY_RESOLUTION_MS);
  delays.reset();
  await work();
  await systemClock.sleep(2 * DELAY_RESOLUTION_MS);
  delays.disable();
  return delays.max / NS_PER_MS;
}
