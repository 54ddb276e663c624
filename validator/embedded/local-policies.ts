/** Differences of a local marketplace's policies from the default ones. Pure data. */
import type { CheckPolicy } from '../checks/check-policy.ts';
import type { WeightPolicy } from '../weights/weight-policy.ts';

/** Changes of the check policy for a machine that has other uses and perhaps no internet connection. */
export const LOCAL_CHECKS = {
  min_free_disk_gib: 0,
  egress_image: null,
  template_images: [],
  // Bandwidth within one machine depends only on its load.
  min_bandwidth_mbit: 0,
  bandwidth_floor_mbit: 0,
  // A rental would occupy one of few nodes; hidden rentals can be requested.
  hidden_rentals_per_day: 0,
} satisfies Partial<CheckPolicy>;

export const LOCAL_WEIGHTS: Partial<WeightPolicy> = {
  min_bandwidth_mbit: 0,
  // A market of one machine pays few fees, which should still be visible in the weights.
  rewards: { value_uusd_per_hour: 1_000_000, fee_return_ppm: 500_000, idle_rate_ppm: 10_000 },
};
