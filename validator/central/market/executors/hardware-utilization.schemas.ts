/** How busy a node is, on the wire (contract 3.2). */
import { z } from 'zod';
import { GpuSample } from './gpu-sample.ts';

const KibUsage = { total: z.int(), used: z.int(), free: z.int(), utilization: z.number() };

export const HardwareUtilization = z
  .object({
    executor_id: z.uuid(),
    timestamp: z.string(),
    /** Older than a minute. */
    stale: z.boolean(),
    /** The GPUs are simulated: nothing computes on them. */
    simulated: z.boolean(),
    cpu: z.object({
      model: z.string(),
      count: z.int(),
      utilization: z.number().nullable(),
      load_1m: z.number().nullable(),
    }),
    ram: z.object({ ...KibUsage, available: z.int() }),
    hard_disk: z.object(KibUsage),
    network: z.object({
      rx_bytes_per_second: z.number().nullable(),
      tx_bytes_per_second: z.number().nullable(),
      upload_speed: z.number().nullable(),
      /** Mbit/s at which images come, unpacking included; null until one was pulled. */
      download_speed: z.number().nullable(),
    }),
    gpus: z.array(GpuSample),
  })
  .meta({ id: 'HardwareUtilization' });
export type HardwareUtilization = z.output<typeof HardwareUtilization>;
