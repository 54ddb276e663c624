/** Composes top-ups: automatic top-ups, charges in progress, and callbacks of the payment processor. */
import type { HttpServer } from '#shared/http/server.ts';
import type { RecordRefusal } from '../../accounts/api-keys/budget-refusal.service.ts';
import type { MailDeps } from '../../delivery/delivery.ts';
import type { DueHandlers } from '../../platform/schedule/schedule.ts';
import type { AccountPods } from '../account-pods.ts';
import { createAutoTopUps } from './auto-top-up.service.ts';
import { registerSimulatedOnboarding } from './simulated-onboarding.ts';
import { createSimulatedPayments } from './simulated-payments.ts';
import { createTopUpJob } from './top-up.job.ts';
import { registerAutoTopUpRoutes, registerPaymentCallback } from './top-up.routes.ts';
import { createTopUps } from './top-up.service.ts';

/** Without a payment processor, the settings are stored, but nothing is charged. */
export function createTopUpParts({ ports, mails, options }: MailDeps, pods: AccountPods) {
  const { db, clock, random, log, payments: given = null } = ports;
  const payments = given === 'simulated' ? createSimulatedPayments({ db, clock, random }) : given;
  const automatic = createAutoTopUps({ db, clock, random, payments, pods });
  const topUps = createTopUps({ db, clock, random, mails, pods });
  const job =
    payments && createTopUpJob({ db, clock, log, payments, topUps, pollMs: options.pollMs });

  return {
    /** Onboarding of payout accounts; null if the payment processor cannot pay accounts. */
    onboarding: payments?.onboarding ?? null,

    dueHandlers: { 'top-up': automatic.daily } satisfies DueHandlers,

    afterSpend: automatic.afterSpend,

    /** Registers the routes below /api. */
    register(api: HttpServer, recordRefusal: RecordRefusal): void {
      registerAutoTopUpRoutes(api, automatic, recordRefusal);
    },

    /** Registers the routes at the origin. `completeOnboarding` returns false for an unknown payout account. */
    registerOrigin(
      origin: HttpServer,
      completeOnboarding: (payoutAccountId: string) => Promise<boolean>,
    ): void {
      if (payments?.parseCallback) {
        const { applyEvent } = topUps;
        registerPaymentCallback(origin, payments.parseCallback, { applyEvent, completeOnboarding });
      }
      if (given === 'simulated') {
        registerSimulatedOnboarding(origin, { db, clock, completeOnboarding });
      }
    },

    /** Runs one pass over charges in flight. For tests. */
    runOnce: async () => job?.runOnce(),
    start: () => job?.start(),
    stop: async () => job?.stop(),
  };
}
