/** Settings of the services in a simulation, as far as they differ from the defaults. Pure data. */
import type { CentralOptions } from '../../central/platform/central-deps.ts';
import type { CheckPolicy } from '../../checks/check-policy.ts';
import type { ProofSize } from '../../inspection/proof/host-proof.ts';

/** A rate that no actor reaches: all requests come from one address. */
const UNLIMITED = { quota: 10_000_000, windowMs: 60_000 };
const SURVEY_INTERVAL_MS = 6 * 3_600_000;

export const CENTRAL_OPTIONS = {
  verifyEmailAtSignup: true,
  trustedProxies: [],
  rateLimits: {
    address: UNLIMITED,
    credential: UNLIMITED,
    urgent: UNLIMITED,
    login: UNLIMITED,
    search: UNLIMITED,
  },
  // The cost of guessing passwords is not simulated.
  passwordCost: { memory: 64, passes: 1, parallelism: 1 },
  nodePlaces: 'private',
  surveyIntervalMs: SURVEY_INTERVAL_MS,
  collectsMetrics: false,
} satisfies Partial<CentralOptions>;

/** Passes over the list of nodes in one interval of inspections. A node is inspected up to one pass later. */
export const LISTS_PER_CHECK = 12;

/** Lines are not measured, and hidden rentals are not made: both need the network of a host. */
export const SIMULATED_CHECKS = {
  min_bandwidth_mbit: 0,
  bandwidth_floor_mbit: 0,
  hidden_rentals_per_day: 0,
} satisfies Partial<CheckPolicy>;

/** The fleet computes no fills, so their sizes matter only to the protocol. */
const SMALLEST_FILL = {
  kind: 'fill',
  lanes: 1,
  lane_blocks: 64,
  steps: 1,
  readMs: 20_000,
} as const;

export const SIMULATED_PROOF: ProofSize = {
  product: { n: 64, rounds: 1 },
  memory: SMALLEST_FILL,
  disk: SMALLEST_FILL,
  gpu: { n: 64, rounds: 1, fillPermille: 1, laneBlocks: 64, steps: 1 },
};
