/** Totals of the market: nodes, prices and capacity by GPU. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';

export const TotalCountExecutorResponse = z
  .object(
    described(
      { total_count: z.int() },
      { total_count: 'Number of all nodes, including rented nodes.' },
    ),
  )
  .meta({ id: 'TotalCountExecutorResponse' });

export const ExecutorStatsResponse = z
  .object(
    described(
      {
        machine_name: z.string(),
        gpu_type: z.string(),
        total_executor_count: z.int(),
        rented_executor_count: z.int(),
        available_executor_count: z.int(),
        total_gpu_count: z.int(),
        rented_gpu_count: z.int(),
        available_gpu_count: z.int(),
        min_price_per_gpu: z.number(),
        avg_price_per_gpu: z.number(),
        max_price_per_gpu: z.number(),
        rental_rate: z.number(),
      },
      {
        machine_name: 'Full name of the GPU.',
        gpu_type: 'Short type of the GPU.',
        total_executor_count: 'Number of offered nodes with this GPU, including rented nodes.',
        rented_executor_count: 'Number of these nodes without a free GPU.',
        available_executor_count: 'Number of these nodes with at least one free GPU.',
        total_gpu_count: 'Number of these GPUs.',
        rented_gpu_count: 'Number of these GPUs that are rented.',
        available_gpu_count: 'Number of these GPUs that are free.',
        min_price_per_gpu: 'Lowest price of a node in USD per GPU and hour.',
        avg_price_per_gpu: 'Mean price of these nodes in USD per GPU and hour.',
        max_price_per_gpu: 'Highest price of a node in USD per GPU and hour.',
        rental_rate: 'Fraction of the GPUs that is rented, 0 to 1.',
      },
    ),
  )
  .meta({ id: 'ExecutorStatsResponse' });
export type ExecutorStatsResponse = z.output<typeof ExecutorStatsResponse>;

export const MachineResponse = z
  .object(
    described(
      { name: z.string(), price: z.number(), rental_rate: z.number(), total_gpu_count: z.int() },
      {
        name: 'Full name of the GPU.',
        price:
          'Reference price in USD per GPU and hour; for a GPU without a reference price, the lowest offered price.',
        rental_rate: 'Fraction of such GPUs that is rented, 0 to 1.',
        total_gpu_count: 'Number of such GPUs.',
      },
    ),
  )
  .meta({ id: 'MachineResponse' });
export type MachineResponse = z.output<typeof MachineResponse>;

export const MachineCapacityResponse = z
  .object(
    described(
      {
        base_model: z.string(),
        buckets: z.record(
          z.string(),
          z.object(
            described(
              { max_cap: z.int(), unrented_count: z.int(), hourly_rate: z.number() },
              {
                max_cap: 'Number of nodes that offer this many GPUs, including rented nodes.',
                unrented_count: 'Number of these nodes on which this many GPUs are free.',
                hourly_rate: 'Lowest price in USD per hour for this many GPUs.',
              },
            ),
          ),
        ),
      },
      { base_model: 'Short type of the GPU.', buckets: 'Capacity by number of GPUs, as text.' },
    ),
  )
  .meta({ id: 'MachineCapacityResponse' });
export type MachineCapacityResponse = z.output<typeof MachineCapacityResponse>;
