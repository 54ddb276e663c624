/** Answers to validators and agents. */
import { z } from 'zod';
import { b, i, maybe, s, u } from './types.ts';

export const NodesToCheck = z.array(
  z.object({
    executor_ip_address: s,
    executor_ip_port: s,
    uptime_in_minutes: maybe(i),
    id: u,
    miner_hotkey: s,
    gpu_count: i,
  }),
);
export const HealthCheck = z.object({
  success: b,
  error: maybe(s),
  details: maybe(z.looseObject({})),
  reason_code: maybe(s),
});
export const ReportsToExamine = z
  .array(
    z.object({
      id: u,
      pod_id: u,
      executor_id: u,
      reason: s,
      reported_ms: i,
      may_enter: b,
      offer: z.object({
        gpu_type: maybe(s),
        gpu_count: i,
        cpu_cores: z.number(),
        memory_bytes: i,
        disk_bytes: maybe(i),
      }),
    }),
  )
  .min(1);
export const LatestWeights = z.object({
  netuid: i,
  uids: z.array(i),
  weights: z.array(i.min(0).max(65_535)),
  version_key: i,
  wait_for_finalization: b,
  wait_for_inclusion: b,
  current_block: maybe(i),
  updated_at: s.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
  validator_key: s,
});
export const Digest = z.object({
  digest: s.regex(/^sha256:[0-9a-f]{64}$/),
  signature: s.startsWith('0x'),
  timestamp: i,
});
