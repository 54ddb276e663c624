/** Index for what an account's open pods hold and cost, without reading its ended pods. */
export const pledges = (): string[] => [
  `create index pods_pledged on pods
    (account_id, state, hold_uusd, price_uusd_per_gpu_hour, gpu_count) where ended_at is null`,
];
