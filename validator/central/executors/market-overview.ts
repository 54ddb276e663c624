/** The market in figures: by machine, by capacity, and which image a GPU is rented with. */
import { ApiError } from '#shared/errors.ts';
import { matchesGpuType, shortGpuType } from '#shared/gpu-type.ts';
import { microToUsd } from '#shared/money.ts';
import type { Database } from '../db/tables.ts';
import { catalogueEntryOf, MACHINE_CATALOGUE } from '../providers/machine-catalogue.ts';
import type { TemplateResponse } from '../templates/template.schemas.ts';
import { gpuTotalOf, machineNameOf, minimumGpusOf } from './executor.row.ts';
import type {
  DefaultDockerImage,
  ExecutorStatsResponse,
  MachineCapacityResponse,
  MachineResponse,
} from './executor.schemas.ts';
import { type ExecutorEntry, listOffered } from './executor.store.ts';

/** GPU counts that capacity is told for. */
const CAPACITY_SIZES = [1, 2, 4, 8] as const;

export type OverviewDeps = {
  db: Database;
  officialTemplates(): Promise<TemplateResponse[]>;
};

export type MarketOverview = ReturnType<typeof createMarketOverview>;

/** All of it is computed anew from the nodes on offer, rented ones included. */
export function createMarketOverview({ db, officialTemplates }: OverviewDeps) {
  return {
    async stats(): Promise<ExecutorStatsResponse[]> {
      return [...grouped(await listOffered(db), machineNameOf)].map(([name, nodes]) =>
        statsOf(name, nodes),
      );
    },

    /** Every known type, and what else is on offer. */
    async machines(): Promise<MachineResponse[]> {
      const groups = grouped(await listOffered(db), machineNameOf);
      const names = new Set([...MACHINE_CATALOGUE.map((entry) => entry.name), ...groups.keys()]);
      return [...names].map((name) => {
        const { total_gpu_count, rental_rate, min_price_per_gpu } = statsOf(
          name,
          groups.get(name) ?? [],
        );
        const price = catalogueEntryOf(name)?.usdPerGpuHour ?? min_price_per_gpu ?? 0;
        return { name, price, rental_rate, total_gpu_count };
      });
    },

    async capacity(): Promise<MachineCapacityResponse[]> {
      const groups = grouped(await listOffered(db), (node) => shortGpuType(machineNameOf(node)));
      return [...groups].map(([base_model, nodes]) => ({ base_model, buckets: bucketsOf(nodes) }));
    },

    /** 404 for a GPU that is neither known nor on offer. */
    async defaultImages(gpuModel: string): Promise<DefaultDockerImage[]> {
      const offered = await listOffered(db);
      const isKnown =
        catalogueEntryOf(gpuModel) !== undefined ||
        offered.some((node) => matchesGpuType(machineNameOf(node), gpuModel));
      const templates = isKnown ? await officialTemplates() : [];
      if (templates.length > 0) return templates.map(imageOf);
      throw new ApiError('node_not_found', `There is no node with a ${gpuModel}`);
    },
  };
}

function imageOf(template: TemplateResponse): DefaultDockerImage {
  const { docker_image, docker_image_tag, docker_image_size, docker_image_digest } = template;
  return {
    docker_image,
    docker_image_tag,
    docker_image_size,
    docker_image_digest: docker_image_digest === '' ? null : docker_image_digest,
  };
}

function statsOf(name: string, nodes: readonly ExecutorEntry[]): ExecutorStatsResponse {
  const total = sum(nodes, gpuTotalOf);
  const free = sum(nodes, (node) => node.slots_free);
  const available = nodes.filter((node) => node.slots_free > 0).length;
  const prices = nodes.map((node) => node.price_uusd_per_gpu_hour);
  const isEmpty = prices.length === 0;
  const average = Math.round(prices.reduce((a, b) => a + b, 0) / Math.max(1, prices.length));
  return {
    machine_name: name,
    gpu_type: shortGpuType(name),
    total_executor_count: nodes.length,
    rented_executor_count: nodes.length - available,
    available_executor_count: available,
    total_gpu_count: total,
    rented_gpu_count: total - free,
    available_gpu_count: free,
    min_price_per_gpu: isEmpty ? null : microToUsd(Math.min(...prices)),
    avg_price_per_gpu: isEmpty ? null : microToUsd(average),
    max_price_per_gpu: isEmpty ? null : microToUsd(Math.max(...prices)),
    rental_rate: total === 0 ? 0 : (total - free) / total,
  };
}

function bucketsOf(nodes: readonly ExecutorEntry[]): MachineCapacityResponse['buckets'] {
  const buckets: MachineCapacityResponse['buckets'] = {};
  for (const size of CAPACITY_SIZES) {
    const able = nodes.filter((node) => gpuTotalOf(node) >= size && minimumGpusOf(node) <= size);
    if (able.length === 0) continue;
    const cheapest = Math.min(...able.map((node) => node.price_uusd_per_gpu_hour));
    buckets[String(size)] = {
      max_cap: able.length,
      unrented_count: able.filter((node) => node.slots_free >= size).length,
      hourly_rate: microToUsd(cheapest * size),
    };
  }
  return buckets;
}

function grouped(
  nodes: readonly ExecutorEntry[],
  keyOf: (node: ExecutorEntry) => string,
): Map<string, ExecutorEntry[]> {
  return Map.groupBy(nodes, keyOf);
}

function sum(nodes: readonly ExecutorEntry[], figure: (node: ExecutorEntry) => number): number {
  return nodes.reduce((total, node) => total + figure(node), 0);
}
