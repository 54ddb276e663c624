/** Figures of the market by machine and by capacity, and the default images of a GPU type. */

import { matchesGpuType, shortGpuType } from '#shared/api/gpu-type.ts';
import { microToUsd } from '#shared/api/money.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { TemplateResponse } from '../templates/template.schemas.ts';
import type { DefaultDockerImage } from './deployment-estimate.schemas.ts';
import { isBuiltin } from './launch-estimate.ts';
import { catalogueEntryOf, MACHINE_CATALOGUE } from './machine-catalogue.ts';
import type { MachineFigures, SizeFigures } from './market-figures.ts';
import type {
  ExecutorStatsResponse,
  MachineCapacityResponse,
  MachineResponse,
} from './market-overview.schemas.ts';
import type { MarketView } from './market-view.ts';

export type OverviewDeps = {
  view: MarketView;
  officialTemplates(): Promise<TemplateResponse[]>;
};

export type MarketOverview = ReturnType<typeof createMarketOverview>;

/** Creates the overview. Its figures are those of all offered nodes at the time of the call, including rented nodes. */
export function createMarketOverview({ view, officialTemplates }: OverviewDeps) {
  const figuresByMachine = async () => (await view.figures()).byMachine();

  return {
    async stats(): Promise<ExecutorStatsResponse[]> {
      return (await figuresByMachine()).map(statsOf);
    },

    /** Every known type, and every other type on offer. */
    async machines(): Promise<MachineResponse[]> {
      const offered = new Map((await figuresByMachine()).map((each) => [each.machine, each]));
      const names = new Set([...MACHINE_CATALOGUE.map((entry) => entry.name), ...offered.keys()]);
      return [...names].map((name) => {
        const figures = offered.get(name);
        const cheapest = figures === undefined ? 0 : microToUsd(figures.minPrice);
        return {
          name,
          price: catalogueEntryOf(name)?.usdPerGpuHour ?? cheapest,
          rental_rate: figures === undefined ? 0 : rentalRateOf(figures),
          total_gpu_count: figures?.gpus ?? 0,
        };
      });
    },

    /**
     * Share of a machine's GPUs that is rented, 0 to 1. If the machine is not offered, the share of all offered GPUs.
     */
    async rentalRate(machine: string): Promise<number> {
      const figures = await figuresByMachine();
      const own = figures.filter((each) => each.machine === machine);
      const counted = own.length > 0 ? own : figures;
      const sumOf = (of: 'gpus' | 'freeGpus') => counted.reduce((sum, each) => sum + each[of], 0);
      return rentalRateOf({ gpus: sumOf('gpus'), freeGpus: sumOf('freeGpus') });
    },

    /** Returns capacity by short GPU name, which several machines may share. */
    async capacity(): Promise<MachineCapacityResponse[]> {
      const models = new Map<string, MachineCapacityResponse['buckets']>();
      for (const { machine, sizes } of await figuresByMachine()) {
        const model = shortGpuType(machine);
        const buckets = models.get(model) ?? {};
        models.set(model, buckets);
        for (const figures of sizes) addCapacity(buckets, figures);
      }
      return [...models].map(([base_model, buckets]) => ({ base_model, buckets }));
    },

    /**
     * Images that every node has without a network come first. Throws 404 for a GPU type that is neither known nor
     * offered.
     */
    async defaultImages(gpuModel: string): Promise<DefaultDockerImage[]> {
      const isKnown =
        catalogueEntryOf(gpuModel) !== undefined ||
        (await figuresByMachine()).some(({ machine }) => matchesGpuType(machine, gpuModel));
      const templates = isKnown ? await officialTemplates() : [];
      const isPulled = ({ docker_image: image }: TemplateResponse) => Number(!isBuiltin(image));
      const sorted = templates.toSorted((a, b) => isPulled(a) - isPulled(b));
      if (sorted.length > 0) return sorted.map(imageOf);
      throw new ApiError('node_not_found', `There is no node with a ${gpuModel}`);
    },
  };
}

function addCapacity(
  buckets: MachineCapacityResponse['buckets'],
  { size, able, free, minPrice }: SizeFigures,
): void {
  if (able === 0) return;
  const rate = microToUsd(minPrice * size);
  const before = buckets[String(size)];
  buckets[String(size)] = {
    max_cap: able + (before?.max_cap ?? 0),
    unrented_count: free + (before?.unrented_count ?? 0),
    hourly_rate: Math.min(rate, before?.hourly_rate ?? rate),
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

function statsOf(figures: MachineFigures): ExecutorStatsResponse {
  const { machine, nodes, availableNodes: available, gpus, freeGpus: free } = figures;
  return {
    machine_name: machine,
    gpu_type: shortGpuType(machine),
    total_executor_count: nodes,
    rented_executor_count: nodes - available,
    available_executor_count: available,
    total_gpu_count: gpus,
    rented_gpu_count: gpus - free,
    available_gpu_count: free,
    min_price_per_gpu: microToUsd(figures.minPrice),
    avg_price_per_gpu: microToUsd(Math.round(figures.priceSum / nodes)),
    max_price_per_gpu: microToUsd(figures.maxPrice),
    rental_rate: rentalRateOf(figures),
  };
}

function rentalRateOf({ gpus, freeGpus: free }: Pick<MachineFigures, 'gpus' | 'freeGpus'>): number {
  return gpus === 0 ? 0 : (gpus - free) / gpus;
}
