/** A marketplace with random pods, unresponsive agents, clock jumps, deletions, limits, transfers and payouts. */
import type { Random } from '#shared/runtime/random.ts';
import { createAccountPods } from '../../validator/central/market/cut-off/cut-off.ts';
import { postGroup } from '../../validator/central/money/ledger/ledger.service.ts';
import { balancesOf, paidAccount } from '../../validator/central/money/ledger/wallet.service.ts';
import { providerAccount } from '../../validator/central/money/metering/settlement.plan.ts';
import { createPayouts } from '../../validator/central/money/payouts/payout.service.ts';
import type { PayoutProcessor } from '../../validator/central/platform/ports.ts';
import { payoutKeyOf } from '../../validator/central/providers/provider.service.ts';
import {
  checkMetered,
  checkMoney,
  checkUsed,
  type Repeated,
  usedUntilNow,
} from '../../validator/simulate/invariants/money-checks.ts';
import type { TestAccount } from '../fakes/scenes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  type TestMarketOverrides,
} from '../fakes/scenes/market-fixture.ts';
import { testCause } from '../fakes/scenes/wallet.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** Price of each node in micro-dollars per hour, chosen so that most divisions leave a remainder. */
const PRICE_UUSD = 1_234_567;
/** Paid part of an account's credit, in micro-dollars. */
const PAID_UUSD = 5_000_000;

export type MoneyWorld = Awaited<ReturnType<typeof createMoneyWorld>>;

/** Number of renters and nodes, and of GPUs per node. */
export type MoneyScene = { renters: number; nodes: number; gpus: number };

/** Creates a separate marketplace in which the first renter referred the other renters. Close it with `close()`. */
export async function createMoneyWorld(
  random: Random,
  { renters, nodes, gpus }: MoneyScene,
  overrides: TestMarketOverrides = {},
) {
  const market = await createTestMarket({ payoutProcessor: anyAnswer(random), ...overrides });
  const { clock, central, ports } = market;
  const { db } = ports;
  const payouts = createPayouts({ ...ports, pods: createAccountPods(ports), payoutKeyOf });
  const repeated: Repeated[] = [];
  const reportedMs = new Map<string, number>();
  const accounts: TestAccount[] = [];
  const offered: AddedNode[] = [];
  for (let count = 0; count < renters; count += 1) accounts.push(await market.renter());
  for (let count = 0; count < nodes; count += 1) {
    offered.push(await market.verifiedNode({ gpus, minimum: 1 }));
  }
  await db.updateTable('executors').set({ price_uusd_per_gpu_hour: PRICE_UUSD }).execute();
  await bringTogether();
  const pods: { id: string; account: TestAccount }[] = [];
  const { id: providerId } = await db
    .selectFrom('providers')
    .select('id')
    .executeTakeFirstOrThrow();

  async function bringTogether(): Promise<void> {
    const [referrer, ...others] = accounts;
    for (const { id } of referrer === undefined ? [] : others) {
      const row = { account_id: id, referrer_id: referrer?.id ?? '', created_at: clock.now() };
      await db
        .insertInto('referrals')
        .values({ ...row, paid_uusd: 0, accrued_uusd: 0, seq: 0 })
        .execute();
      const leg = { debit: 'external:topup', credit: paidAccount(id) } as const;
      await db
        .transaction()
        .execute((tx) => postGroup(tx, [{ ...leg, amountUusd: PAID_UUSD }], testCause()));
    }
  }

  function pick<T>(from: readonly T[]): T {
    const one = from[random.int(from.length)];
    if (one === undefined) throw new Error('cannot choose from an empty list');
    return one;
  }
  const hosts = () => offered.map(({ id }) => market.agents.host(id));

  async function later(ms: number): Promise<void> {
    await clock.advance(ms);
    await market.sync();
  }

  /** Sets the wall clock back, as an operator does to correct it. */
  async function goBack(ms: number): Promise<void> {
    const toMs = clock.now();
    await clock.advance(-ms);
    repeated.push({ fromMs: toMs - ms, toMs });
  }

  async function payOut(): Promise<void> {
    await payouts.request({ kind: 'provider', id: providerId });
    const [referrer] = accounts;
    if (referrer !== undefined) await payouts.request({ kind: 'referral', id: referrer.id });
    await central.payOut();
  }

  /** Records, before an operation that may end pods earlier, the time of use that agents have reported so far. */
  async function note({ id: accountId }: TestAccount): Promise<void> {
    for (const [podId, atMs] of await usedUntilNow(db, accountId, clock.now())) {
      reportedMs.set(podId, Math.max(atMs, reportedMs.get(podId) ?? 0));
    }
  }

  async function limit(): Promise<void> {
    const pod = latest();
    if (pod === undefined) return;
    await note(pod.account);
    const body = { max_spend_usd: pick([0.000001, 0.06 + random.int(50) / 100, null]) };
    await market.call('PATCH', `/pods/${pod.id}`, { headers: pod.account.key, body });
  }

  async function transfer(): Promise<void> {
    const [from, to] = [pick(accounts), pick(accounts)];
    await note(from);
    const body = { recipient_email: to.email, amount: pick([0.000001, 0.5, 1, 4]) };
    await market.call('POST', '/users/me/transfer-credits', { headers: from.key, body });
  }

  async function rent(): Promise<void> {
    const account = pick(accounts);
    await note(account);
    const limit = random.int(4) === 0 ? { max_spend_usd: 0.06 + random.int(50) / 100 } : {};
    const rented = await market.rent(account, pick(offered).id, { gpu_count: 1, ...limit });
    if (rented.status === 200) pods.push({ id: rented.body.id, account });
  }

  const latest = () => pods.at(-1 - random.int(Math.min(pods.length, 2 * offered.length) || 1));

  /** Sends a renter's request for one of its latest pods. */
  async function requestAny(method: 'POST' | 'DELETE', action: string): Promise<void> {
    const pod = latest();
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
    () => goBack(random.int(10 * MINUTE_MS)),
    () => central.meterPods(),
    () => central.meterPods(),
    async () => {
      pick(hosts()).up = random.int(3) > 0;
    },
    () => requestAny('DELETE', ''),
    () => requestAny('POST', '/reboot'),
    finishReboots,
    limit,
    transfer,
    () => (random.int(8) === 0 ? clock.advance(3 * HOUR_MS) : later(1_000)),
    () => (random.int(8) === 0 ? later(2 * DAY_MS) : payOut()),
  ];

  return {
    rented: () => pods.length,
    db,
    rent,
    later,
    payOut,
    meter: () => central.meterPods(),
    close: market.close,

    /** Removes a random pod. */
    async remove(): Promise<void> {
      const live = await db.selectFrom('pods').select('id').where('ended_at', 'is', null).execute();
      const pod = live.length === 0 ? undefined : pods.find(({ id }) => id === pick(live).id);
      if (pod === undefined) return;
      await market.call('DELETE', `/pods/${pod.id}`, { headers: pod.account.key });
    },

    /** Removes all pods. */
    async clear(): Promise<void> {
      await central.pods.removeAll();
      await later(MINUTE_MS);
    },

    /** Number of ended pods, and the earnings that are not paid to providers yet. */
    async progress(): Promise<{ ended: number; owedUusd: number }> {
      const ended = await db
        .selectFrom('pods')
        .select('id')
        .where('ended_at', 'is not', null)
        .execute();
      const { posted } = await balancesOf(db, providerAccount(providerId));
      return { ended: ended.length, owedUusd: posted };
    },

    /**
     * Advances the clock while every agent reports no change; writes the result of the sync passes in one SQL
     * statement.
     */
    async quiet(ms: number): Promise<void> {
      await clock.advance(ms);
      const seen = { seen_at: clock.now(), healthy_at: clock.now() };
      await db.updateTable('pods').set(seen).where('state', '=', 'running').execute();
      await central.runDue();
    },

    /** Runs one random operation. */
    async step(): Promise<void> {
      await pick(steps)();
    },

    /** Reconnects every agent and runs all due work. */
    async settle(): Promise<void> {
      for (const host of hosts()) host.up = true;
      await later(MINUTE_MS);
      await central.meterPods();
    },

    async check(): Promise<void> {
      await checkMoney(db, repeated);
      await checkMetered(db, clock.now());
      await checkUsed(db, reportedMs);
    },
  };
}

/** Answers at random: paid, declined, delayed or no answer. The final answer for a payout never changes. */
function anyAnswer(random: Random): PayoutProcessor {
  const decided = new Map<string, boolean>();
  return {
    name: 'any',
    async send({ key }) {
      const isPaid = decided.get(key) ?? random.int(4) > 0;
      decided.set(key, isPaid);
      if (random.int(3) === 0) throw new Error('no answer');
      if (random.int(3) === 0) return { state: 'pending', externalId: key };
      if (isPaid) return { state: 'paid', externalId: key };
      return { state: 'declined', externalId: key, reason: 'declined' };
    },
  };
}
