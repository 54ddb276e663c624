/** What surrounds a balance, put together: notifications, thresholds, top-ups, transfers, payouts, rates. */
import type { HttpServer } from '#shared/http/server.ts';
import { registerNotificationSettingRoutes } from '../accounts/notification-settings/notification-setting.routes.ts';
import {
  createNotificationSettings,
  forgetNotificationSetting,
} from '../accounts/notification-settings/notification-setting.service.ts';
import type { CentralDeps, CentralPorts } from '../platform/central-deps.ts';
import type { Db } from '../platform/database/tables.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import type { Payments, PayoutProcessor } from '../platform/ports.ts';
import type { DueHandlers } from '../platform/schedule/schedule.ts';
import { registerAlphaRoutes } from './alpha/alpha.routes.ts';
import { createAlpha } from './alpha/alpha.service.ts';
import { balanceOf, fundsIn } from './balance/balance.service.ts';
import { registerLowBalanceRoutes } from './low-balance/low-balance.routes.ts';
import type { Funds } from './low-balance/low-balance.rule.ts';
import { createLowBalance, forgetLowBalance } from './low-balance/low-balance.service.ts';
import { registerBilling, registerStatement } from './metering/statement.routes.ts';
import { createStatements, type StatementsDeps } from './metering/statement.service.ts';
import { createTickJob } from './metering/tick.job.ts';
import { createPayoutJob } from './payouts/payout.job.ts';
import { createPayouts, paidOutUntil } from './payouts/payout.service.ts';
import { createSimulatedPayouts } from './payouts/simulated-payouts.ts';
import { forgetReferrals } from './referrals/referral.service.ts';
import { createAutoTopUps, forgetAutoTopUp } from './top-ups/auto-top-up.service.ts';
import { createSimulatedPayments } from './top-ups/simulated-payments.ts';
import { createTopUpJob } from './top-ups/top-up.job.ts';
import { registerAutoTopUpRoutes, registerPaymentCallback } from './top-ups/top-up.routes.ts';
import { createTopUps } from './top-ups/top-up.service.ts';
import { registerTransferRoutes } from './transfers/transfer.routes.ts';
import { createTransfers, forgetTransferNotes } from './transfers/transfer.service.ts';

const DAY_MS = 86_400_000;
/** Between two settlements of a running pod. */
const TICK_MS = 60_000;

export type AroundBalance = ReturnType<typeof createAroundBalance>;

/** Nothing runs and nothing is registered yet. */
export function createAroundBalance(
  deps: CentralDeps,
  { requirePodOf }: Pick<StatementsDeps, 'requirePodOf'>,
) {
  const { db, clock, random, log, alphaRates = null } = deps.ports;
  const processor = payoutProcessorOf(deps.ports);
  const payouts = createPayouts({ db, clock, random });
  const payoutJob = processor && createPayoutJob({ db, clock, log, processor, payouts });
  const { mails } = deps;
  const payments = paymentsOf(deps.ports);
  const lowBalance = createLowBalance({ db, clock, random, mails });
  const autoTopUps = createAutoTopUps({ db, clock, random, payments });
  const topUps = createTopUps({ db, clock, random, mails });
  const job = payments && createTopUpJob({ db, clock, log, payments, topUps });
  const dueHandlers: DueHandlers = { 'top-up': autoTopUps.daily };

  /** What follows from a spend of accounts that have so much left, in its transaction. */
  async function afterSpend(tx: Db, left: ReadonlyMap<string, Funds>): Promise<void> {
    await lowBalance.watch(tx, left);
    await autoTopUps.watch(tx, left);
  }
  const { meterTickMs: intervalMs = TICK_MS } = deps.options;
  const meter = createTickJob({ db, clock, random, log, intervalMs, afterSpend });
  const statements = createStatements({ db, requirePodOf, paidOutUntil });

  /** The same of one account, as it stands. */
  async function afterSpendOf(tx: Db, accountId: string): Promise<void> {
    await afterSpend(tx, new Map([[accountId, fundsIn(await balanceOf(tx, accountId))]]));
  }

  return {
    /** Routes below /api. */
    registerApi(api: HttpServer, idempotency: Idempotency): void {
      registerNotificationSettingRoutes(api, createNotificationSettings({ db, clock, random }));
      registerLowBalanceRoutes(api, lowBalance);
      registerAlphaRoutes(api, createAlpha(alphaRates));
      registerAutoTopUpRoutes(api, autoTopUps);
      const { topUpWaitMs = DAY_MS } = deps.options;
      const settings = { topUpWaitMs, afterSpend: afterSpendOf };
      const transfers = createTransfers({ db, clock, random, ...settings });
      registerTransferRoutes(api, { transfers, idempotency, clock });
      registerStatement(api, statements);
    },

    /** Routes below /portal. */
    registerPortal: (portal: HttpServer) => registerBilling(portal, { statements, clock }),

    /** Routes at the origin. */
    registerOrigin(origin: HttpServer): void {
      if (payments?.read) registerPaymentCallback(origin, payments.read, topUps.hear);
    },

    /** What it does when its time has come. */
    dueHandlers,

    afterSpendOf,

    /** One pass of metering over every running pod: tests call it instead of `startJobs`. */
    meterOnce: meter.runOnce,

    /** One pass over charges in flight: tests call it instead of `startJobs`. */
    chargeTopUps: async () => job?.runOnce(),

    /** One pass over open payouts, for the same. */
    payOut: async () => payoutJob?.runOnce(),

    /** Removes what is kept for an account that is being deleted. */
    async forget(tx: Db, accountId: string): Promise<void> {
      await forgetNotificationSetting(tx, accountId);
      await forgetLowBalance(tx, accountId);
      await forgetAutoTopUp(tx, accountId);
      await forgetTransferNotes(tx, accountId);
      await forgetReferrals(tx, accountId);
    },

    startJobs(): { stop(): Promise<void> } {
      meter.start();
      job?.start();
      payoutJob?.start();
      return {
        async stop() {
          await Promise.all([meter.stop(), job?.stop(), payoutJob?.stop()]);
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
