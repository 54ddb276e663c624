/** Invariants of the money, for simulations and for random runs of tests. */
import { strict as assert } from 'node:assert';
import { auditLedger } from '../../central/money/ledger/audit.service.ts';
import { providerShare, referralShare } from '../../central/money/ledger/shares.ts';
import { walletOf } from '../../central/money/ledger/wallet.service.ts';
import { costOfSegments, rateOf, totalOf } from '../../central/money/metering/cost.ts';
import { meteredAccounts } from '../../central/money/metering/metered.service.ts';
import { accountRunsOutAt } from '../../central/money/metering/runway.service.ts';
import { burningOf, spendsOutAt } from '../../central/money/metering/runway.ts';
import { settleAccounts } from '../../central/money/metering/settlement.service.ts';
import { spentBy } from '../../central/money/metering/statement.service.ts';
import type { Meter, SegmentRow } from '../../central/money/metering/usage.store.ts';
import type { Database } from '../../central/platform/database/tables.ts';
import { rehearse } from '../../central/platform/database/transactions.ts';
import { openHolds } from './open-holds.ts';

/** A span of wall-clock time that occurred twice, because the clock was set back. */
export type Repeated = { fromMs: number; toMs: number };

/** Rejects with the name of the violated invariant. */
export async function checkMoney(db: Database, repeated: readonly Repeated[]): Promise<void> {
  const { findings } = await db.transaction().execute(auditLedger);
  assert.deepEqual(findings, [], 'I1, I2, I3, I4, I8, I12, I15, I16, I17');
  const { segmentsOf } = await checkMeters(db);
  await checkNodes(db, segmentsOf, repeated);
  await checkPayouts(db);
  const holds = await openHolds(db);
  const ended = await db.selectFrom('pods').select('hold_id').where('ended_at', 'is not', null);
  for (const { hold_id: hold } of await ended.execute()) {
    assert.equal(holds.has(String(hold)), false, 'I12');
  }
}

/**
 * Checks that each charge is the cost of the metered time of its pod, and that providers, platform and referrers
 * together receive all charges.
 * Rejects with the name of the violated invariant.
 */
export async function checkMeters(db: Database) {
  const meters = await db.selectFrom('usage_meters').selectAll().execute();
  const segments = await db.selectFrom('usage_segments').selectAll().orderBy('seq').execute();
  const pods = await db.selectFrom('pods').select(['id', 'first_running_at']).execute();
  const beganAt = new Map(pods.map(({ id, first_running_at: atMs }) => [id, atMs]));
  const segmentsOf = Map.groupBy(segments, ({ pod_id: podId }) => podId);
  for (const meter of meters) {
    const own = segmentsOf.get(meter.pod_id) ?? [];
    const pieces = own.map((segment) => ({
      fromMs: segment.from_ms,
      toMs: segment.to_ms,
      isBillable: segment.is_billable === 1,
      rate: { priceUusdPerGpuHour: segment.price_uusd_per_gpu_hour, gpus: segment.gpu_count },
    }));
    const cost = costOfSegments(pieces, meter.settled_to_ms);
    assert.equal(meter.charged_uusd, totalOf(cost, rateOf(meter)), 'I5, I9');
    assert.equal(meter.provider_uusd, providerShare(meter.charged_uusd), 'I6');
    assert.equal(own[0]?.from_ms, beganAt.get(meter.pod_id), 'I7');
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
  return { segmentsOf };
}

/**
 * Checks that the use that is not posted yet is exactly what a posting would post now: the same charges, paid from the
 * same credit, leave the same wallets.
 */
export async function checkMetered(db: Database, nowMs: number): Promise<void> {
  const burning = await db
    .selectFrom('usage_meters')
    .select('account_id')
    .distinct()
    .where('is_billable', '=', 1)
    .execute();
  const ids = burning.map(({ account_id: id }) => id);
  await db.transaction().execute((tx) =>
    rehearse(tx, async () => {
      const metered = await meteredAccounts(tx, ids, nowMs);
      await settleAccounts(tx, ids, nowMs);
      for (const [accountId, { wallet, meters }] of metered) {
        assert.deepEqual(await walletOf(tx, accountId), wallet, 'the wallet after a posting');
        const posted = await meteredAccounts(tx, [accountId], nowMs);
        for (const [podId, meter] of posted.get(accountId)?.meters ?? []) {
          assert.deepEqual(amountsIn(meter), amountsIn(meters.get(podId)), 'the posted use');
        }
      }
    }),
  );
}

function amountsIn(meter: Meter | undefined) {
  const { charged_uusd, provider_uusd, granted_uusd, absorbed_uusd, settled_to_ms } = meter ?? {};
  return { charged_uusd, provider_uusd, granted_uusd, absorbed_uusd, settled_to_ms };
}

/** Checks that the sum that renters paid equals what providers, the platform and referrers hold or were paid. */
async function checkSides(db: Database, spent: number): Promise<void> {
  const accounts = await db.selectFrom('ledger_accounts').selectAll().execute();
  const own = await db
    .selectFrom('payouts')
    .select((eb) => eb.fn.sum<number | null>('amount_uusd').as('uusd'))
    .where('method', '=', 'balance')
    .executeTakeFirst();
  const credited = own?.uusd ?? 0;
  let [paid, left, earned, absorbed] = [credited, 0, credited, 0];
  for (const { id, credits_posted: credits, debits_posted: debits } of accounts) {
    const balance = credits - debits;
    if (/^(?:user|granted):/.test(id)) left += balance;
    else if (/^(?:provider:|referral:|platform:fee$|external:payout$)/.test(id)) earned += balance;
    else if (id === 'platform:absorbed') absorbed -= balance;
    else if (id.startsWith('clearing:')) assert.equal(balance, 0, `${id} is not 0`);
    else paid -= balance;
  }
  assert.equal(paid - left, spent, 'the reported cost equals what was charged');
  assert.equal(spent + absorbed, earned, 'I8');
}

/**
 * Checks that the pods of a node never cost more than all of its GPUs (I11). Time that occurred twice may be charged
 * twice.
 */
async function checkNodes(
  db: Database,
  segmentsOf: ReadonlyMap<string, readonly SegmentRow[]>,
  repeated: readonly Repeated[],
): Promise<void> {
  const nodes = await db.selectFrom('executors').selectAll().execute();
  const meters = await db.selectFrom('usage_meters').selectAll().execute();
  for (const { id, gpu_count: gpus, price_uusd_per_gpu_hour: price } of nodes) {
    const changes = repeated.flatMap(({ fromMs, toMs }) => span(fromMs, toMs, -gpus * price));
    for (const meter of meters.filter(({ executor_id: executorId }) => executorId === id)) {
      for (const segment of segmentsOf.get(meter.pod_id) ?? []) {
        const { from_ms: fromMs, to_ms: toMs = null, gpu_count: count } = segment;
        if (segment.is_billable === 0) continue;
        const untilMs = toMs ?? Math.max(fromMs, meter.settled_to_ms);
        changes.push(...span(fromMs, untilMs, count * segment.price_uusd_per_gpu_hour));
      }
    }
    // Segments that end at an instant are processed before those that start at it.
    changes.sort((a, b) => a.atMs - b.atMs || a.rate - b.rate);
    let rate = 0;
    for (const change of changes) {
      rate += change.rate;
      assert.ok(rate <= gpus * price, `I11: ${rate} on ${id} at ${change.atMs}`);
    }
  }
}

function span(fromMs: number, toMs: number, rate: number) {
  const [first, last] = [
    { atMs: fromMs, rate },
    { atMs: toMs, rate: -rate },
  ];
  return toMs > fromMs ? [first, last] : [];
}

/**
 * Checks that payouts match the transfers out of the ledger, that open payouts are held, and that referrers have their
 * share of the fee.
 */
async function checkPayouts(db: Database): Promise<void> {
  const accounts = await db.selectFrom('ledger_accounts').selectAll().execute();
  const byId = new Map(accounts.map((account) => [account.id, account]));
  const payouts = await db.selectFrom('payouts').selectAll().execute();
  const sumOf = (wanted: (payout: (typeof payouts)[number]) => boolean) =>
    payouts.filter(wanted).reduce((sum, { amount_uusd: uusd }) => sum + uusd, 0);
  const left = sumOf(({ state, method }) => state === 'paid' && method !== 'balance');
  assert.equal(
    byId.get('external:payout')?.credits_posted ?? 0,
    left,
    'I16: paid payouts equal the transfers out',
  );
  for (const { id, debits_pending: pending } of accounts) {
    if (!/^(?:provider|referral):/.test(id)) continue;
    const isOpen = (state: string) => state === 'requested' || state === 'pending';
    const open = sumOf(({ party, state }) => party === id && isOpen(state));
    assert.equal(pending, open, 'I16: open payouts are held');
  }
  for (const row of await db.selectFrom('referrals').selectAll().execute()) {
    assert.equal(row.accrued_uusd, referralShare(row.paid_uusd), 'the referrer’s share of the fee');
  }
}

/**
 * Returns the time until which each paid pod of an account was used: the time that its agent reported, or the pod's end
 * if that is earlier.
 */
export async function usedUntilNow(
  db: Database,
  accountId: string,
  nowMs: number,
): Promise<Map<string, number>> {
  const cutOffMs = await accountRunsOutAt(db, accountId);
  const meters = await db
    .selectFrom('usage_meters')
    .innerJoin('pods', 'pods.id', 'usage_meters.pod_id')
    .selectAll('usage_meters')
    .select(['pods.seen_at', 'pods.removal_at', 'pods.max_spend_uusd'])
    .where('usage_meters.account_id', '=', accountId)
    .where('is_billable', '=', 1)
    .execute();
  return new Map(
    meters.map((meter) => {
      const { pod_id: podId, seen_at: seenMs, removal_at: removalMs, max_spend_uusd: cap } = meter;
      const capMs = cap === null ? null : spendsOutAt(burningOf(meter), cap);
      const ends = [seenMs, removalMs, cutOffMs, capMs].filter((ms) => ms !== null);
      return [podId, Math.min(nowMs, ...ends)];
    }),
  );
}

/**
 * Checks that every use that agents reported before a change of limits or funds is charged or absorbed: no pod is
 * recorded as stopped for lack of money before the reported use ended.
 */
export async function checkUsed(
  db: Database,
  reportedMs: ReadonlyMap<string, number>,
): Promise<void> {
  const stops = await db
    .selectFrom('usage_segments')
    .select(['pod_id', 'from_ms', 'to_ms'])
    .where('cause', 'in', ['balance_exhausted', 'max_spend_reached'])
    .execute();
  for (const { pod_id: podId, from_ms: fromMs, to_ms: toMs } of stops) {
    const usedMs = reportedMs.get(podId);
    if (usedMs === undefined || (toMs !== null && toMs <= usedMs)) continue;
    assert.ok(fromMs >= usedMs, `${usedMs - fromMs} ms of ${podId} were used but not charged`);
  }
}
