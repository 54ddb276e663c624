/** Composes the money module: ledger, metering, top-ups, transfers, payouts, low balances and alpha quotes. */
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { createRefusalRecorder } from '../accounts/api-keys/budget-refusal.service.ts';
import type { MailDeps } from '../delivery/delivery.ts';
import type { Db } from '../platform/database/tables.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import type { AccountPods } from './account-pods.ts';
import { registerAlphaRoutes } from './alpha/alpha.routes.ts';
import { balanceOf, fundsIn, grantSignupCredit } from './balance/balance.service.ts';
import { registerLedgerRoutes } from './ledger/ledger.routes.ts';
import { createMonthJob } from './ledger/month.job.ts';
import { registerLowBalanceRoutes } from './low-balance/low-balance.routes.ts';
import {
  createLowBalance,
  deleteLowBalanceData,
  rearmLowBalance,
} from './low-balance/low-balance.service.ts';
import { deleteKeyBudgets } from './metering/key-budget.service.ts';
import { type AfterSpend, createMeteringJob } from './metering/metering.job.ts';
import { createOperatorRefunds } from './metering/operator-refund.service.ts';
import { POSTING_INTERVAL_MS } from './metering/posting.plan.ts';
import { createReportRefunds } from './metering/report-refund.ts';
import { postOnRequest } from './metering/settlement.service.ts';
import { registerBilling, registerStatement } from './metering/statement.routes.ts';
import { createStatements, type StatementsDeps } from './metering/statement.service.ts';
import type { PayoutsDeps } from './payouts/payout.service.ts';
import { paidUntil } from './payouts/payout.store.ts';
import { createPayoutParts } from './payouts/payouts.ts';
import {
  addReferral,
  deleteReferrals,
  earnedByReferrals,
  referrerOf,
} from './referrals/referral.service.ts';
import { deleteAutoTopUpData } from './top-ups/auto-top-up.service.ts';
import { createTopUpParts } from './top-ups/top-ups.ts';
import { registerTransferRoutes } from './transfers/transfer.routes.ts';
import { createTransfers, deleteTransferNotes } from './transfers/transfer.service.ts';

const DAY_MS = 86_400_000;
/** Default time between two passes of the metering job. */
const METERING_INTERVAL_MS = 60_000;

export type Billing = ReturnType<typeof createBilling>;

/** Functions of modules above money. */
export type BillingPorts = {
  pods: AccountPods;
  payoutKeyOf: PayoutsDeps['payoutKeyOf'];
  requirePodOf: StatementsDeps['requirePodOf'];
  nodeNameOf: StatementsDeps['nodeNameOf'];
};

/** Functions of the money module that the composition root passes to the accounts module. */
export const moneyForAccounts = (clock: Clock) => ({
  balanceOf: (db: Db, accountId: string) => balanceOf(db, accountId, clock.now()),
  grantSignupCredit,
  earnedByReferrals,
  referrerOf,
  addReferral,
});

/** Composes the module; starts no jobs and registers no routes. */
export function createBilling(deps: MailDeps, above: BillingPorts) {
  const { db, clock, random, log, metrics, alphaRates = null } = deps.ports;
  const { mails, options } = deps;
  const { pods, payoutKeyOf, requirePodOf, nodeNameOf } = above;
  const lowBalance = createLowBalance({ db, clock, random, mails });
  const topUps = createTopUpParts(deps, pods);
  const payouts = createPayoutParts(deps, { pods, payoutKeyOf });
  const statements = createStatements({
    db,
    clock,
    random,
    requirePodOf,
    nodeNameOf,
    paidOutUntil: paidUntil,
  });
  const tickMs = options.meterTickMs ?? METERING_INTERVAL_MS;
  const metering = createMeteringJob({
    db,
    clock,
    random,
    log,
    tickMs,
    postingMs: options.meterPostingMs ?? POSTING_INTERVAL_MS,
    afterSpend,
    reportUnmetered: metrics?.setUnmetered,
  });
  const months = createMonthJob({ db, clock, log });
  const refundDeps = { clock, random, pods, rearmLowBalance };
  const refunds = createOperatorRefunds(refundDeps);

  async function afterSpend(tx: Db, left: Parameters<AfterSpend>[1]): Promise<void> {
    await lowBalance.afterSpend(tx, left);
    await topUps.afterSpend(tx, left);
  }

  async function afterSpendOf(tx: Db, accountId: string): Promise<void> {
    await afterSpend(
      tx,
      new Map([[accountId, fundsIn(await balanceOf(tx, accountId, clock.now()))]]),
    );
  }

  return {
    /** Registers the routes below /api. */
    registerApi(api: HttpServer, idempotency: Idempotency): void {
      registerLedgerRoutes(api, {
        db,
        postUse: (accountId) => postOnRequest({ db, clock, random }, accountId),
      });
      registerStatement(api, statements);
      registerLowBalanceRoutes(api, lowBalance);
      registerAlphaRoutes(api, alphaRates);
      const recordRefusal = createRefusalRecorder({ db, clock, random });
      topUps.register(api, recordRefusal);
      const { topUpWaitMs = DAY_MS } = options;
      const settings = { pods, topUpWaitMs, afterSpend: afterSpendOf };
      const transfers = createTransfers({ db, clock, random, ...settings });
      registerTransferRoutes(api, { transfers, idempotency, clock, recordRefusal });
    },

    /** Registers the routes below /portal. */
    registerPortal(portal: HttpServer): void {
      registerBilling(portal, { statements, clock });
    },

    /** Onboarding of payout accounts; null if the payment processor cannot pay accounts. */
    onboarding: topUps.onboarding,

    /** Registers the routes at the origin. `completeOnboarding` returns false for an unknown payout account. */
    registerOrigin: topUps.registerOrigin,

    dueHandlers: topUps.dueHandlers,

    refunds,
    reportRefunds: createReportRefunds(refundDeps),

    /** Checks low balance and auto top-up of an account. Call it in the transaction of a spend. */
    afterSpendOf,

    /** Runs one pass of the metering job. For tests, which do not start jobs. */
    meterPods: metering.runOnce,
    /** Runs one pass over charges in flight. For tests. */
    chargeTopUps: topUps.runOnce,
    /** Runs one pass over open payouts. For tests. */
    payOut: async () => payouts?.runOnce(),

    /** Deletes settings and personal data of an account that is being removed. Records of money are kept. */
    async deleteAccountData(tx: Db, accountId: string): Promise<void> {
      await deleteLowBalanceData(tx, accountId);
      await deleteAutoTopUpData(tx, accountId);
      await deleteTransferNotes(tx, accountId);
      await deleteReferrals(tx, accountId);
      await deleteKeyBudgets(tx, accountId);
    },

    startJobs(): { stop(): Promise<void> } {
      metering.start();
      months.start();
      topUps.start();
      payouts?.start();
      return {
        async stop() {
          await Promise.all([metering.stop(), months.stop(), topUps.stop(), payouts?.stop()]);
        },
      };
    },
  };
}
