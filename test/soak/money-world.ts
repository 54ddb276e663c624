/** Random lives of pods, silences, jumps of the clock and deletions, and what has to be true of the money after each. */
import { strict as assert } from 'node:assert';
import type { Random } from '#shared/random.ts';
import type { Database } from '../../validator/central/db/tables.ts';
import { auditLedger } from '../../validator/central/ledger/audit.service.ts';
import { costOfSegments, providerShare } from '../../validator/central/metering/meter.ts';
import { spentBy } from '../../validator/central/metering/spent.ts';
import type { TestAccount } from '../fakes/central-fixture.ts';
import type { AddedNode, TestMarket } from '../fakes/market-fixture.ts';
import { openHolds } from '../fakes/wallet.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Of each node: one that divides nothing evenly. */
const PRICE_UUSD = 1_234_567;

export type MoneyWorld = Awaited<ReturnType<typeof createMoneyWorld>>;

/** On a market of the caller's, with as many renters and nodes of two GPUs. */
export async function createMoneyWorld(
  market: TestMarket,
  random: Random,
  { renters, nodes }: { renters: number; nodes: number },
) {
  const { clock, central, ports } = market;
  const { db } = ports;
  const accounts: TestAccount[] = [];
  const offered: AddedNode[] = [];
  for (let count = 0; count < renters; count += 1) accounts.push(await market.renter());
  for (let count = 0; count < nodes; count += 1) {
    offered.push(await market.verifiedNode({ gpus: 2, minimum: 1 }));
  }
  await db.updateTable('executors').set({ price_uusd_per_gpu_hour: PRICE_UUSD }).execute();
  const pods: { id: string; account: TestAccount }[] = [];

  function pick<T>(from: readonly T[]): T {
    const one = from[random.int(from.length)];
    if (one === undefined) throw new Error('nothing to pick from');
    return one;
  }
  const hosts = () => offered.map(({ id }) => market.agents.host(id));

  async function later(ms: number): Promise<void> {
    await clock.advance(ms);
    await market.sync();
  }

  async function rent(): Promise<void> {
    const account = pick(accounts);
    const limit = random.int(4) === 0 ? { max_spend_usd: 0.01 + random.int(50) / 100 } : {};
    const rented = await market.rent(account, pick(offered).id, { gpu_count: 1, ...limit });
    if (rented.status === 200) pods.push({ id: rented.body.id, account });
  }

  /** Something that its renter asks of one of the latest pods. */
  async function ask(method: 'POST' | 'DELETE', action: string): Promise<void> {
    const pod = pods.at(-1 - random.int(Math.min(pods.length, 2 * offered.length) || 1));
    if (pod === undefined) return;
    const body = method === 'POST' ? { body: {} } : {};
    await market.call(method, `/pods/${pod.id}${action}`, { headers: pod.account.key, ...body });
  }

  async function finishReboots(): Promise<void> {
    for (const host of hosts()) {
      for (const view of host.pods.values()) {
        const phase = pick(['running', 'running', 'failed'] as const);
        host.change(view.id, { phase, reboots_done: view.reboots_requested });
      }
    }
  }

  const steps: readonly (() => Promise<unknown>)[] = [
    rent,
    () => later(1 + random.int(MINUTE_MS)),
    () => later(1 + random.int(MINUTE_MS)),
    () => clock.advance(random.int(20 * MINUTE_MS)),
    () => clock.advance(-random.int(10 * MINUTE_MS)),
    () => central.meterPods(),
    () => central.meterPods(),
    async () => {
      pick(hosts()).up = random.int(3) > 0;
    },
    () => ask('DELETE', ''),
    () => ask('POST', '/reboot'),
    finishReboots,
    () => (random.int(8) === 0 ? clock.advance(3 * HOUR_MS) : later(1_000)),
  ];

  return {
    rented: () => pods.length,
    rent,
    later,
    remove: () => ask('DELETE', ''),
    meter: () => central.meterPods(),

    /** One of all that may happen. */
    async step(): Promise<void> {
      await pick(steps)();
    },

    /** Everybody is there again and what is due is done. */
    async settle(): Promise<void> {
      for (const host of hosts()) host.up = true;
      await later(MINUTE_MS);
      await central.meterPods();
    },

    check: () => checkMoney(db),
  };
}

/** Rejects, naming the invariant (marketplace reference 2.4), when the money does not add up. */
export async function checkMoney(db: Database): Promise<void> {
  const { findings } = await db.transaction().execute(auditLedger);
  assert.deepEqual(findings, [], 'I1, I2, I3, I4, I8, I12, I15, I17');
  const meters = await db.selectFrom('usage_meters').selectAll().execute();
  const segments = await db.selectFrom('usage_segments').selectAll().orderBy('seq').execute();
  const segmentsOf = Map.groupBy(segments, ({ pod_id: podId }) => podId);
  for (const meter of meters) {
    const own = segmentsOf.get(meter.pod_id) ?? [];
    const pieces = own.map((segment) => ({
      fromMs: segment.from_ms,
      toMs: segment.to_ms,
      isBillable: segment.is_billable === 1,
      rate: { priceUusdPerGpuHour: segment.price_uusd_per_gpu_hour, gpus: segment.gpu_count },
    }));
    const { uusd } = costOfSegments(pieces, meter.settled_to_ms);
    assert.equal(meter.charged_uusd, uusd, 'I5, I9');
    assert.equal(meter.provider_uusd, providerShare(meter.charged_uusd), 'I6');
    for (const [index, { from_ms: from }] of own.entries()) {
      if (index > 0) assert.equal(from, own[index - 1]?.to_ms, 'I7');
    }
    assert.equal(own.at(-1)?.to_ms ?? null, meter.ended_at, 'I7, I10');
    for (const { is_billable: billable, state } of own) {
      assert.equal(billable === 1, state === 'running' || state === 'rebooting', 'I9');
    }
  }
  const spent = meters.reduce((total, meter) => total + spentBy(meter), 0);
  await checkSides(db, spent);
  const holds = await openHolds(db);
  const ended = await db.selectFrom('pods').select('hold_id').where('ended_at', 'is not', null);
  for (const { hold_id: hold } of await ended.execute()) {
    assert.equal(holds.has(String(hold)), false, 'I12');
  }
}

/** What renters paid is what providers and the platform have. */
async function checkSides(db: Database, spent: number): Promise<void> {
  const accounts = await db.selectFrom('ledger_accounts').selectAll().execute();
  let [given, left, earned, absorbed] = [0, 0, 0, 0];
  for (const { id, credits_posted: credits, debits_posted: debits } of accounts) {
    const balance = credits - debits;
    if (/^(?:user|granted):/.test(id)) left += balance;
    else if (id.startsWith('provider:') || id === 'platform:fee') earned += balance;
    else if (id === 'platform:absorbed') absorbed -= balance;
    else if (id.startsWith('clearing:')) assert.equal(balance, 0, `${id} is not 0`);
    else given -= balance;
  }
  assert.equal(given - left, spent, 'what is shown is what was taken');
  assert.equal(spent + absorbed, earned, 'I8');
}
