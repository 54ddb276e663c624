/** A provider and an account that have earnings, and a payout processor whose behaviour the test sets. */
import { systemRandom } from '#shared/runtime/random.ts';
import { createAccountPods } from '../../../validator/central/market/cut-off/cut-off.ts';
import { auditLedger } from '../../../validator/central/money/ledger/audit.service.ts';
import { postGroup } from '../../../validator/central/money/ledger/ledger.service.ts';
import { balancesOf } from '../../../validator/central/money/ledger/wallet.service.ts';
import {
  accountOfParty,
  createPayouts,
  type Party,
} from '../../../validator/central/money/payouts/payout.service.ts';
import {
  createSimulatedPayouts,
  type SIMULATED_NETWORKS,
} from '../../../validator/central/money/payouts/simulated-payouts.ts';
import type { Database } from '../../../validator/central/platform/database/tables.ts';
import type { PayoutProcessor } from '../../../validator/central/platform/ports.ts';
import { payoutKeyOf } from '../../../validator/central/providers/provider.service.ts';
import { createManualClock } from '../manual-clock.ts';
import { createTestDatabase } from './central-database.ts';
import { createPodScene } from './pod-scene.ts';
import { testCause } from './wallet.ts';

export type PayoutScene = Awaited<ReturnType<typeof createPayoutScene>>;

/** Posts earnings to the ledger without a rental. */
export async function earn(db: Database, party: Party, amountUusd: number): Promise<void> {
  const leg = { debit: 'platform:absorbed', credit: accountOfParty(party), amountUusd } as const;
  await db.transaction().execute((tx) => postGroup(tx, [leg], testCause()));
}

/** Creates the scene. The caller must call `close()`. */
export async function createPayoutScene() {
  const db = await createTestDatabase();
  const clock = createManualClock();
  const simulated = createSimulatedPayouts({ db, clock, random: systemRandom });
  let network: keyof typeof SIMULATED_NETWORKS | null = null;
  const processor: PayoutProcessor = {
    name: simulated.name,
    send: (order) => simulated.send({ ...order, network: network ?? order.network }),
  };
  const pods = await createPodScene({ db, clock, payoutProcessor: processor });
  const { id } = await db.selectFrom('providers').select('id').executeTakeFirstOrThrow();
  const provider: Party = { kind: 'provider', id };
  const payouts = createPayouts({
    db,
    clock,
    random: systemRandom,
    pods: createAccountPods({ clock, random: systemRandom }),
    payoutKeyOf,
  });
  return {
    ...pods,
    db,
    provider,
    referrer: { kind: 'referral', id: pods.account.id } satisfies Party,
    payouts,
    processor,
    earn: (party: Party, uusd: number) => earn(db, party, uusd),
    /** Makes every later payout behave as on this simulated network. */
    behave(as: keyof typeof SIMULATED_NETWORKS): void {
      network = as;
    },
    payOut: pods.market.central.payOut,
    rows: () => db.selectFrom('payouts').selectAll().orderBy('created_at').execute(),
    books: () => db.selectFrom('simulated_payouts').selectAll().execute(),
    balance: (party: Party) => balancesOf(db, accountOfParty(party)),
    paidToWorld: async () => (await balancesOf(db, 'external:payout')).posted,
    findings: async () => (await db.transaction().execute(auditLedger)).findings,
  };
}
