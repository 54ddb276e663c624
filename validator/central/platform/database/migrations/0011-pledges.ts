/** Index to sum up the holds and the cost of an account's pods that have not ended, without reading its ended pods. */
export const pledges = (): string[] => [
  `create index pods_pledged on pods
    (account_id, state, hold_uusd, price_uusd_per_gpu_hour, gpu_count) where ended_at is null`,
];
