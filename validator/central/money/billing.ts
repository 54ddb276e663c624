/** Composes the money module: ledger, metering, top-ups, transfers, payouts, low balances and alpha quotes. */
import type { HttpServer } from '#shared/http/server.ts';
import { createRefusalRecorder } from '../accounts/api-keys/budget-refusal.service.ts';
import type { MailDeps } from '../delivery/delivery.ts';
import type { CentralPorts } from '../platform/central-deps.ts';
import type { Db } from '../platform/database/tables.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import type { Payments, PayoutProcessor } from '../platform/ports.ts';
import type { DueHandlers } from '../platform/schedule/schedule.ts';
import type { AccountPods } from './account-pods.ts';
import { registerAlphaRoutes } from './alpha/alpha.routes.ts';
import { balanceOf, fundsIn, grantSignupCredit } from './balance/balance.service.ts';
import { registerLedgerRoutes } from './ledger/ledger.routes.ts';
import { registerLowBalanceRoutes } from './low-balance/low-balance.routes.ts';
import {
  createLowBalance,
  deleteLowBalanceData,
  rearmLowBalance,
} from './low-balance/low-balance.service.ts';
import { deleteKeyBudgets } from './metering/key-budget.service.ts';
import { type AfterSpend, createMeteringJob } from './metering/metering.job.ts';
import { createOperatorRefunds } from './metering/operator-refund.service.ts';
import { registerBilling, registerStatement } from './metering/statement.routes.ts';
import { createStatements, type StatementsDeps } from './metering/statement.service.ts';
import { createPayoutJob } from './payouts/payout.job.ts';
import { createPayouts, type PayoutsDeps } from './payouts/payout.service.ts';
import { paidUntil } from './payouts/payout.store.ts';
import { createSimulatedPayouts } from './payouts/simulated-payouts.ts';
import {
  addReferral,
  deleteReferrals,
  earnedByReferrals,
  referrerOf,
} from './referrals/referral.service.ts';
import { createAutoTopUps, deleteAutoTopUpData } from './top-ups/auto-top-up.service.ts';
import { registerSimulatedOnboarding } from './top-ups/simulated-onboarding.ts';
import { createSimulatedPayments } from './top-ups/simulated-payments.ts';
import { createTopUpJob } from './top-ups/top-up.job.ts';
import { registerAutoTopUpRoutes, registerPaymentCallback } from './top-ups/top-up.routes.ts';
import { createTopUps } from './top-ups/top-up.service.ts';
import { registerTransferRoutes } from './transfers/transfer.routes.ts';
import { createTransfers, deleteTransferNotes } from './transfers/transfer.service.ts';

const DAY_MS = 86_400_000;
/** Default time between two settlements of a running pod. */
const METERING_INTERVAL_MS = 60_000;

export type Billing = ReturnType<typeof createBilling>;

/** Functions of modules above money. */
export type BillingPorts = {
  pods: AccountPods;
  payoutKeyOf: PayoutsDeps['payoutKeyOf'];
  requirePodOf: StatementsDeps['requirePodOf'];
};

/** Money functions of the ports of accounts. */
export const moneyForAccounts = {
  balanceOf,
  grantSignupCredit,
  earnedByReferrals,
  referrerOf,
  addReferral,
};

/** Starts no jobs and registers no routes. */
export function createBilling(deps: MailDeps, above: BillingPorts) {
  const { db, clock, random, log, alphaRates = null } = deps.ports;
  const { mails, options } = deps;
  const { pods, payoutKeyOf, requirePodOf } = above;
  const payments = paymentsOf(deps.ports);
  const processor = payoutProcessorOf(deps.ports);
  const lowBalance = createLowBalance({ db, clock, random, mails });
  const autoTopUps = createAutoTopUps({ db, clock, random, payments, pods });
  const topUps = createTopUps({ db, clock, random, mails, pods });
  const payouts = createPayouts({ db, clock, random, pods, payoutKeyOf });
  const statements = createStatements({ db, requirePodOf, paidOutUntil: paidUntil });
  const topUpJob = payments && createTopUpJob({ db, clock, log, payments, topUps });
  const payoutJob = processor && createPayoutJob({ db, clock, log, processor, payouts });
  const metering = createMeteringJob({
    db,
    clock,
    random,
    log,
    intervalMs: options.meterTickMs ?? METERING_INTERVAL_MS,
    afterSpend,
  });
  const refunds = createOperatorRefunds({ clock, random, pods, rearmLowBalance });
  const dueHandlers: DueHandlers = { 'top-up': autoTopUps.daily };

  async function afterSpend(tx: Db, left: Parameters<AfterSpend>[1]): Promise<void> {
    await lowBalance.afterSpend(tx, left);
    await autoTopUps.afterSpend(tx, left);
  }

  async function afterSpendOf(tx: Db, accountId: string): Promise<void> {
    await afterSpend(tx, new Map([[accountId, fundsIn(await balanceOf(tx, accountId))]]));
  }

  return {
    /** Registers routes below /api. */
    registerApi(api: HttpServer, idempotency: Idempotency): void {
      registerLedgerRoutes(api, { db });
      registerStatement(api, statements);
      registerLowBalanceRoutes(api, lowBalance);
      registerAlphaRoutes(api, alphaRates);
      const recordRefusal = createRefusalRecorder({ db, clock, random });
      registerAutoTopUpRoutes(api, autoTopUps, recordRefusal);
      const { topUpWaitMs = DAY_MS } = options;
      const settings = { pods, topUpWaitMs, afterSpend: afterSpendOf };
      const transfers = createTransfers({ db, clock, random, ...settings });
      registerTransferRoutes(api, { transfers, idempotency, clock, recordRefusal });
    },

    /** Registers routes below /portal. */
    registerPortal(portal: HttpServer): void {
      registerBilling(portal, { statements, clock });
    },

    /** Onboarding of payout accounts; null if the payment processor has none. */
    onboarding: payments?.onboarding ?? null,

    /** Registers routes at the origin. `completeOnboarding` returns false for an unknown payout account. */
    registerOrigin(
      origin: HttpServer,
      completeOnboarding: (payoutAccountId: string) => Promise<boolean>,
    ): void {
      if (payments?.parseCallback) {
        const { applyEvent } = topUps;
        registerPaymentCallback(origin, payments.parseCallback, { applyEvent, completeOnboarding });
      }
      if (deps.ports.payments === 'simulated') {
        registerSimulatedOnboarding(origin, { db, clock, completeOnboarding });
      }
    },

    dueHandlers,

    /** Refunds by operators. */
    refunds,

    /** Checks low balance and auto top-up of an account. Call it in the transaction of a spend. */
    afterSpendOf,

    /** Runs one pass of the metering job. For tests, which do not start jobs. */
    meterPods: metering.runOnce,
    /** Runs one pass over charges in flight. For tests. */
    chargeTopUps: async () => topUpJob?.runOnce(),
    /** Runs one pass over open payouts. For tests. */
    payOut: async () => payoutJob?.runOnce(),

    /** Deletes settings and personal data of an account that is being removed. Records of money stay. */
    async deleteAccountData(tx: Db, accountId: string): Promise<void> {
      await deleteLowBalanceData(tx, accountId);
      await deleteAutoTopUpData(tx, accountId);
      await deleteTransferNotes(tx, accountId);
      await deleteReferrals(tx, accountId);
      await deleteKeyBudgets(tx, accountId);
    },

    startJobs(): { stop(): Promise<void> } {
      metering.start();
      topUpJob?.start();
      payoutJob?.start();
      return {
        async stop() {
          await Promise.all([metering.stop(), topUpJob?.stop(), payoutJob?.stop()]);
        },
      };
    },
  };
}

function paymentsOf({ payments = null, ...ports }: CentralPorts): Payments | null {
  return payments === 'simulated' ? createSimulatedPayments(ports) : payments;
}

function payoutProcessorOf({
  payoutProcessor = null,
  ...ports
}: CentralPorts): PayoutProcessor | null {
  return payoutProcessor === 'simulated' ? createSimulatedPayouts(ports) : payoutProcessor;
}
