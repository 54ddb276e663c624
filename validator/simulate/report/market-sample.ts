/** The market at one time, by GPU model and by region: how much is offered, how much is rented, and at what price. */
import type { Database } from '../../central/platform/database/tables.ts';
import type { MarketSample, RegionSample } from './report.ts';
import { sum } from './statistics.ts';

export type NodeAtTime = {
  gpu_type: string;
  gpu_count: number;
  state: string;
  price_uusd_per_gpu_hour: number;
  /** Number of its GPUs that are rented. */
  rented: number;
};

/** A GPU model at one time, as far as the database of the central API has it. */
type ModelAtTime = Omit<MarketSample, 'asked_usd'>;

/** A region at one time, without the figures of the hour that ended. */
export type RegionAtTime = Omit<RegionSample, 'accepted' | 'interruptions'>;

const MICRO_USD = 1_000_000;

export type MarketView = {
  atHours: number;
  /** Region of an executor. */
  regionOf(executor: string): string;
  /** Mean price in USD per GPU and hour of all GPUs of a model in the run. */
  askedUsd(gpu: string): number | null;
};

/** Returns the models and regions at this time, as the database of the central API has them. */
export async function sampleMarket(
  db: Database,
  { atHours, regionOf, askedUsd }: MarketView,
): Promise<{ models: MarketSample[]; regions: RegionAtTime[] }> {
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
  const nodes = executors.map(({ id, ...node }) => ({
    ...node,
    rented: rented.get(id) ?? 0,
    region: regionOf(id),
  }));
  const models = samplesOf(nodes, atHours).map((sample) => ({
    ...sample,
    asked_usd: askedUsd(sample.gpu),
  }));
  return { models, regions: regionsOf(nodes, atHours) };
}

/** Returns one sample for each GPU model, in the order of their names. Pure. */
export function samplesOf(nodes: readonly NodeAtTime[], atHours: number): ModelAtTime[] {
  const models = Map.groupBy(nodes, ({ gpu_type: gpu }) => gpu);
  return [...models]
    .map(([gpu, group]) => sampleOf(gpu, group, atHours))
    .sort((a, b) => (a.gpu < b.gpu ? -1 : 1));
}

/** Returns one sample for each region, in the order of their names. Pure. */
export function regionsOf(
  nodes: readonly (NodeAtTime & { region: string })[],
  atHours: number,
): RegionAtTime[] {
  return [...Map.groupBy(nodes, ({ region }) => region)]
    .map(([region, group]) => ({ at_hours: atHours, region, ...countsOf(group) }))
    .sort((a, b) => (a.region < b.region ? -1 : 1));
}

function sampleOf(gpu: string, nodes: readonly NodeAtTime[], atHours: number): ModelAtTime {
  const offered = nodes.filter(isOffered);
  const partly = offered.filter((node) => node.rented > 0 && node.rented < node.gpu_count);
  return {
    at_hours: atHours,
    gpu,
    ...countsOf(nodes),
    stranded_gpus: sum(partly.map((node) => node.gpu_count - node.rented)),
    offered_usd: meanPrice(offered, (node) => node.gpu_count),
    rented_usd: meanPrice(nodes, (node) => node.rented),
  };
}

const isOffered = ({ state }: NodeAtTime): boolean => state === 'verified';

const gpusOf = (nodes: readonly NodeAtTime[]): number =>
  sum(nodes.map(({ gpu_count: count }) => count));

const countsOf = (nodes: readonly NodeAtTime[]) => ({
  hosts: nodes.length,
  gpus: gpusOf(nodes),
  verified_gpus: gpusOf(nodes.filter(isOffered)),
  rented_gpus: sum(nodes.map(({ rented }) => rented)),
  free_gpus: sum(nodes.filter(isOffered).map(({ gpu_count: count, rented }) => count - rented)),
});

/** Mean price in USD per GPU and hour, weighted by `weigh`; null without weight. */
function meanPrice(
  nodes: readonly NodeAtTime[],
  weigh: (node: NodeAtTime) => number,
): number | null {
  const total = sum(nodes.map(weigh));
  if (total === 0) return null;
  return sum(nodes.map((node) => node.price_uusd_per_gpu_hour * weigh(node))) / total / MICRO_USD;
}
