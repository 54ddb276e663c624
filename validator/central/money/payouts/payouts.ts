/** Composes payouts: the job that sends them to the configured or the simulated processor. */
import type { CentralDeps } from '../../platform/central-deps.ts';
import { createPayoutJob } from './payout.job.ts';
import { createPayouts, type PayoutsDeps } from './payout.service.ts';
import { createSimulatedPayouts } from './simulated-payouts.ts';

/** If null, there is no processor, and payouts remain open. */
export function createPayoutParts(
  { ports, options }: CentralDeps,
  above: Pick<PayoutsDeps, 'pods' | 'payoutKeyOf'>,
) {
  const { db, clock, random, log, payoutProcessor: given = null } = ports;
  const processor = given === 'simulated' ? createSimulatedPayouts({ db, clock, random }) : given;
  if (processor === null) return null;
  const payouts = createPayouts({ db, clock, random, ...above });
  return createPayoutJob({ db, clock, log, processor, payouts, pollMs: options.pollMs });
}
