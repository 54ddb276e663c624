/** Settings of a simulation that differ from production. Pure. */

import type { Scenario } from '../scenarios/scenario.ts';
import { LISTS_PER_CHECK } from '../world/settings.ts';
import { duration } from './html/text.ts';
import type { Difference } from './report.ts';

const MINUTE_S = 60;

/** Production values are the defaults of the services. */
export function differencesOf(scenario: Scenario): Difference[] {
  const interval = (setting: string, seconds: number, production: string): Difference => ({
    setting,
    simulation: `each ${duration(seconds)}`,
    production,
  });
  const fixed = (setting: string, simulation: string, production: string): Difference => ({
    setting,
    simulation,
    production,
  });
  const checkSeconds = scenario.check_interval_minutes * MINUTE_S;
  return [
    interval('Inspections', checkSeconds, 'each 15 min'),
    interval('Lists of nodes to inspect', checkSeconds / LISTS_PER_CHECK, 'each 60 s'),
    interval('Pod sync of idle hosts', scenario.sync_interval_seconds, 'each 10 s'),
    interval('Pod sync of starting and ending pods', scenario.busy_sync_seconds, 'each 10 s'),
    interval(
      'Pod sync of hosts that do not answer, at most',
      scenario.unreachable_sync_seconds,
      'each 30 s',
    ),
    interval('Metering', scenario.meter_tick_seconds, 'each 60 s'),
    interval(
      'Jobs that poll for other processes',
      scenario.poll_seconds,
      'each job by its own interval',
    ),
    interval(
      'Renters’ requests for a pod that runs',
      scenario.watch_minutes * MINUTE_S,
      'as often as a renter likes',
    ),
    interval('Removal of old rows', scenario.poll_seconds, 'each 10 min'),
    fixed('Line measurements', 'none: bandwidth is not limited', 'each host'),
    fixed('Hidden rentals', 'none', 'as the check policy sets'),
    fixed('Proofs of work', 'modelled: the protocol without computation', 'computed'),
    fixed('Signatures of the validator’s requests', 'SHA-256 with a shared key', 'sr25519'),
    fixed('Gateway', 'the central API reaches agents directly', 'through the validator'),
    fixed('Limits of requests and passwords’ cost', 'none, and lowest', 'as configured'),
    fixed('Metrics', 'not collected', 'collected'),
    fixed('Payments and payouts', 'simulated processor', 'Stripe'),
  ];
}
