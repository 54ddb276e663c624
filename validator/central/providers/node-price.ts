/** GPU types and the price band of each type. Pure. */

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

/** Finds a type by its short or full name. Throws 400 with the list of known types. */
export function requireKnownType(gpuType: string): CatalogueEntry {
  const entry = catalogueEntryOf(gpuType);
  if (entry !== undefined) return entry;
  const known = MACHINE_CATALOGUE.map(({ name }) => name);
  throw new ApiError('bad_request', `Unknown GPU type ${gpuType}. Known: ${known.join(', ')}`, {
    hint: 'Use a GPU type from GET /v1/shared-config.',
    details: { known_gpu_types: known },
  });
}

/** Returns the canonical name of a type, so that no text of a provider is published. Throws 400 for an unknown type. */
export function requireTypeName(gpuType: string): string {
  return knownTypeName(gpuType) ?? requireKnownType(gpuType).name;
}

/**
 * Returns the price in micro-dollars per GPU and hour; the reference price if `statedUsd` is null. Throws 400 if the
 * price is outside the band.
 */
export function nodePriceUusd(entry: CatalogueEntry, statedUsd: number | null): number {
  if (statedUsd === null) return usdToMicro(entry.usdPerGpuHour);
  const { lowest, highest } = bandOf(entry);
  // The band is checked before the conversion, because the conversion fails for numbers beyond the safe integer range.
  const isNear = statedUsd >= 0 && statedUsd <= 2 * microToUsd(highest);
  const price = isNear ? usdToMicro(statedUsd) : Number.POSITIVE_INFINITY;
  if (price >= lowest && price <= highest) return price;
  const band = `${formatUsdCeil(lowest)} to ${formatUsdFloor(highest)}`;
  throw new ApiError(
    'bad_request',
    `The price of a ${entry.name} must be within ${band} per GPU-hour`,
    {
      hint: `Choose a price within ${band}.`,
    },
  );
}

/** Returns true if the price in micro-dollars is within the band of the type. */
export function isPriceAllowed(entry: CatalogueEntry, priceUusd: number): boolean {
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
