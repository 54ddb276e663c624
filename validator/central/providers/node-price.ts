/** What a node may cost. Pure. */

import { formatUsdCeil, formatUsdFloor, microToUsd, usdToMicro } from '#shared/api/money.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import {
  type CatalogueEntry,
  catalogueEntryOf,
  knownTypeName,
  MACHINE_CATALOGUE,
  MAX_PRICE_RATE,
  MIN_PRICE_RATE,
} from '../market/executors/machine-catalogue.ts';

/** The known type meant by `gpuType`; 400 listing all of them for any other. */
export function requireKnownType(gpuType: string): CatalogueEntry {
  const entry = catalogueEntryOf(gpuType);
  if (entry !== undefined) return entry;
  const known = MACHINE_CATALOGUE.map(({ name }) => name);
  throw new ApiError('bad_request', `Unknown GPU type ${gpuType}. Known: ${known.join(', ')}`, {
    hint: 'Use a GPU type of GET /v1/shared-config.',
    details: { known_gpu_types: known },
  });
}

/** The same, as the market writes it: nothing that others read is in a provider's own words. */
export function requireTypeName(gpuType: string): string {
  return knownTypeName(gpuType) ?? requireKnownType(gpuType).name;
}

/** Micro-dollars per GPU and hour: the reference price when none is stated; 400 outside the band. */
export function nodePriceUusd(entry: CatalogueEntry, statedUsd: number | null): number {
  if (statedUsd === null) return usdToMicro(entry.usdPerGpuHour);
  const { lowest, highest } = bandOf(entry);
  // Compared before it is converted: a price beyond the safe range has no micro-dollars.
  const isNear = statedUsd >= 0 && statedUsd <= 2 * microToUsd(highest);
  const price = isNear ? usdToMicro(statedUsd) : Number.POSITIVE_INFINITY;
  if (price >= lowest && price <= highest) return price;
  const band = `${formatUsdCeil(lowest)} to ${formatUsdFloor(highest)}`;
  throw new ApiError(
    'bad_request',
    `The price of a ${entry.name} lies within ${band} per GPU-hour`,
    {
      hint: `Choose a price within ${band}.`,
    },
  );
}

/** Whether a price in micro-dollars may be one of this type. */
export function priceWithin(entry: CatalogueEntry, priceUusd: number): boolean {
  const { lowest, highest } = bandOf(entry);
  return priceUusd >= lowest && priceUusd <= highest;
}

function bandOf({ usdPerGpuHour }: CatalogueEntry): { lowest: number; highest: number } {
  const reference = usdToMicro(usdPerGpuHour);
  return {
    lowest: Math.ceil(reference * MIN_PRICE_RATE),
    highest: Math.floor(reference * MAX_PRICE_RATE),
  };
}
