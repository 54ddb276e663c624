/** Models of the history of metrics. */
import { z } from 'zod';
import { IsoTime, NaiveTime, optional } from '../../platform/wire.ts';
import { RESOLUTIONS, type Resolution } from './retained.ts';

const SECONDS = RESOLUTIONS.map(({ seconds }) => seconds);

const RESOLUTION_OF = { 10: 10, 60: 60, 600: 600 } as const satisfies Record<number, Resolution>;

export const HistoryQuery = z
  .object({
    from: optional(IsoTime).meta({
      description:
        'Start of the range. Default: the whole period that is retained at the resolution; without a resolution, the last 15 minutes.',
    }),
    to: optional(IsoTime).meta({ description: 'End of the range, exclusive. Default: now.' }),
    resolution: optional(z.enum(['10', '60', '600']).transform((text) => RESOLUTION_OF[text])).meta(
      {
        description:
          'Seconds per entry: 10 is retained for 15 minutes, 60 for 3 hours, 600 for 30 days. Default: the finest resolution that is retained since `from`.',
      },
    ),
    per_gpu: z
      .stringbool()
      .optional()
      .meta({ description: 'True: `gpus` has the figures of each GPU. Default: false.' }),
  })
  .meta({ example: { resolution: '600', per_gpu: true } });
export type HistoryQuery = z.output<typeof HistoryQuery>;

const Values = z.array(z.number().nullable());

/**
 * Figures of each interval; null if not measured. `avg` is the mean of the samples, of which there is one every 10
 * seconds.
 */
function figures(description: string) {
  return z
    .object({
      min: Values.meta({ description: 'Least value of each interval.' }),
      avg: Values.meta({ description: 'Mean of each interval.' }),
      max: Values.meta({ description: 'Greatest value of each interval.' }),
    })
    .meta({ description });
}

const GpuHistory = z
  .object({
    index: z.int().meta({ description: 'Position of the GPU in its pod or node, from 0.' }),
    uuid: z
      .string()
      .nullable()
      .meta({ description: 'Identifier of the GPU; null in the history of a node.' }),
    gpu_utilization: Values.meta({ description: 'Use of the GPU, percent.' }),
    memory_utilization: Values.meta({ description: 'Percent of the GPU memory in use.' }),
    power_draw_w: Values.meta({ description: 'Power, watts.' }),
    temperature_c: Values.meta({ description: 'Temperature, degrees Celsius.' }),
    thermal_throttle: Values.meta({
      description: 'Percent of the samples with clocks reduced by heat.',
    }),
    power_throttle: Values.meta({
      description: 'Percent of the samples with clocks reduced by a power limit.',
    }),
  })
  .meta({ id: 'GpuHistory', description: 'Means of one GPU, one entry per interval.' });
export type GpuHistory = z.output<typeof GpuHistory>;

const MetricHistory = z.object({
  simulated: z.boolean().meta({ description: 'True: the GPUs are simulated.' }),
  stale: z.boolean().meta({
    description: 'True: the newest samples are missing, because the node does not answer.',
  }),
  resolution: z.literal(SECONDS).meta({ description: 'Seconds per entry.' }),
  timestamps: z.array(NaiveTime).meta({
    description: 'Start of each interval, oldest first, without gaps. All arrays have this length.',
  }),
  samples: z.array(z.int()).meta({
    description:
      'Samples in each interval; 0 for a gap, in which all figures are null. A complete interval has resolution / 10.',
  }),
  cpu_utilization: figures('Percent of the processors of the node, or of the limit of the pod.'),
  ram_utilization: figures('Percent of the memory of the node, or of the limit of the pod.'),
  rx_bytes_per_second: figures('Received bytes per second.'),
  tx_bytes_per_second: figures('Sent bytes per second.'),
  disk_used_bytes: figures('Used bytes of the disk for pods, or bytes that the pod has written.'),
  disk_read_bytes_per_second: figures('Bytes per second read from the disks.'),
  disk_write_bytes_per_second: figures('Bytes per second written to the disks.'),
  gpu_utilization: figures(
    'Use of the GPUs, percent. Minimum and maximum are those of single GPUs; the mean is over all GPUs.',
  ),
  memory_utilization: figures(
    'Percent of the GPU memory in use, aggregated like `gpu_utilization`.',
  ),
  power_draw_w: figures('Watts per GPU, aggregated like `gpu_utilization`.'),
  temperature_c: figures('Degrees Celsius, aggregated like `gpu_utilization`.'),
  thermal_throttle: figures('Percent of the samples with clocks reduced by heat.'),
  power_throttle: figures('Percent of the samples with clocks reduced by a power limit.'),
  gpus: z.array(GpuHistory).meta({ description: 'At most 16 GPUs; empty without `per_gpu`.' }),
});
export type MetricHistory = z.output<typeof MetricHistory>;

export const PodMetricHistory = MetricHistory.extend({
  pod_id: z.uuid().meta({ description: 'Id of the pod.' }),
}).meta({ id: 'PodMetricHistory' });
export type PodMetricHistory = z.output<typeof PodMetricHistory>;

export const NodeMetricHistory = MetricHistory.extend({
  executor_id: z.uuid().meta({ description: 'Id of the node.' }),
}).meta({ id: 'NodeMetricHistory', description: 'History of the metrics of a node.' });
export type NodeMetricHistory = z.output<typeof NodeMetricHistory>;
