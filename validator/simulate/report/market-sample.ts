/** The market at one time, by GPU model: how much is offered, how much is rented, and at what price. */
import type { Database } from '../../central/platform/database/tables.ts';
import type { MarketSample } from './report.ts';
import { sum } from './statistics.ts';

export type NodeAtTime = {
  gpu_type: string;
  gpu_count: number;
  state: string;
  price_uusd_per_gpu_hour: number;
  /** Number of its GPUs that are rented. */
  rented: number;
};

const MICRO_USD = 1_000_000;

export async function sampleMarket(db: Database, atHours: number): Promise<MarketSample[]> {
  const executors = await db
    .selectFrom('executors')
    .select(['id', 'gpu_type', 'gpu_count', 'state', 'price_uusd_per_gpu_hour'])
    .where('state', '<>', 'removed')
    .execute();
  const taken = await db
    .selectFrom('gpu_slots')
    .select(['executor_id', (eb) => eb.fn.count<number>('pod_id').as('rented')])
    .where('pod_id', 'is not', null)
    .groupBy('executor_id')
    .execute();
  const rented = new Map(taken.map((row) => [row.executor_id, Number(row.rented)]));
  return samplesOf(
    executors.map(({ id, ...node }) => ({ ...node, rented: rented.get(id) ?? 0 })),
    atHours,
  );
}

/** Returns one sample for each GPU model, in the order of their names. Pure. */
export function samplesOf(nodes: readonly NodeAtTime[], atHours: number): MarketSample[] {
  const models = Map.groupBy(nodes, ({ gpu_type: gpu }) => gpu);
  return [...models]
    .map(([gpu, group]) => sampleOf(gpu, group, atHours))
    .sort((a, b) => (a.gpu < b.gpu ? -1 : 1));
}

function sampleOf(gpu: string, nodes: readonly NodeAtTime[], atHours: number): MarketSample {
  const gpusOf = (group: readonly NodeAtTime[]) => sum(group.map(({ gpu_count: count }) => count));
  const offered = nodes.filter(({ state }) => state === 'verified');
  const rented = sum(nodes.map((node) => node.rented));
  const partly = offered.filter((node) => node.rented > 0 && node.rented < node.gpu_count);
  return {
    at_hours: atHours,
    gpu,
    hosts: nodes.length,
    gpus: gpusOf(nodes),
    verified_gpus: gpusOf(offered),
    rented_gpus: rented,
    stranded_gpus: sum(partly.map((node) => node.gpu_count - node.rented)),
    offered_usd: meanPrice(offered, (node) => node.gpu_count),
    rented_usd: meanPrice(nodes, (node) => node.rented),
  };
}

/** Mean price in USD per GPU and hour, weighted by `weigh`; null without weight. */
function meanPrice(
  nodes: readonly NodeAtTime[],
  weigh: (node: NodeAtTime) => number,
): number | null {
  const total = sum(nodes.map(weigh));
  if (total === 0) return null;
  return sum(nodes.map((node) => node.price_uusd_per_gpu_hour * weigh(node))) / total / MICRO_USD;
}
