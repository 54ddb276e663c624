/** Figures of nodes as renters ask for them: GB of 10^9 bytes, countries by code or name. Pure. */
import { locationOf } from './executor.row.ts';

const BYTES_PER_GB = 1_000_000_000;
const BYTES_PER_MIB = 1_048_576;
const BYTES_PER_KIB = 1_024;

/** Of `mib`; rounded down, so that a node has at least what is said of it. */
export function memoryGbOf(mib: number | null): number | null {
  return gigabytes(mib, BYTES_PER_MIB);
}

/** Of `kib`; rounded down as well. */
export function storageGbOf(kib: number | null): number | null {
  return gigabytes(kib, BYTES_PER_KIB);
}

/** Code and full name of the country, of those that the node tells. */
export function countryNamesOf(locationJson: string | null): string[] {
  const { country_code: code, country } = locationOf({
    location_json: locationJson,
    lat: null,
    lon: null,
  });
  return [code, country].filter((text) => text !== null);
}

/** Whether `wanted` is the node's country, in any case; a node that tells none is in no country. */
export function isInCountry(locationJson: string | null, wanted: string): boolean {
  const name = wanted.trim().toLowerCase();
  return countryNamesOf(locationJson).some((text) => text.toLowerCase() === name);
}

function gigabytes(amount: number | null, unitBytes: number): number | null {
  return amount === null ? null : Math.floor((amount * unitBytes * 100) / BYTES_PER_GB) / 100;
}
