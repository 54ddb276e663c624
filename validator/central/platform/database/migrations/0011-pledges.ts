/** What an account's pods hold and cost, found without reading the pods, however many it has had. */
export const pledges = (): string[] => [
  `create index pods_pledged on pods
    (account_id, state, hold_uusd, price_uusd_per_gpu_hour, gpu_count) where ended_at is null`,
];
