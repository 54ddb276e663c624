/** Constraints on the place of a node: country, region and distance. Pure. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Executor } from '../../platform/database/tables.ts';
import { atMost, BY_GROUP, type Constraint, oneOf } from './constraints.ts';
import { countryNamesOf, isInCountry, isInRegion, regionNamesOf } from './node-figures.ts';

export type Place = Pick<Executor, 'location_json' | 'lat' | 'lon'>;

/** Members of a request that select nodes by their place. Null means absent. */
export type PlaceQuery = {
  country?: string | null | undefined;
  region?: string | null | undefined;
  lat?: number | null | undefined;
  lon?: number | null | undefined;
  max_distance_mile?: number | null | undefined;
};

/** Throws 422 for a distance without coordinates. `part` is the part of the request that contains it. */
export function assertPlace(query: PlaceQuery, part: 'query' | 'body' = 'query'): void {
  if (query.max_distance_mile == null) return;
  const missing = (['lat', 'lon'] as const).filter((name) => query[name] == null);
  if (missing.length === 0) return;
  throw new ApiError('validation_error', 'Request validation failed', {
    hint: `Send ${missing.join(' and ')} with max_distance_mile.`,
    validationErrors: missing.map((name) => ({
      field: `${part}.${name}`,
      message: 'Field required with max_distance_mile',
      type: 'missing',
    })),
  });
}

/** `placeOf` returns the place of a node. A node without the compared part of a place does not meet the constraint. */
export function placeConstraints<T>(
  { country, region, lat, lon, max_distance_mile: miles }: PlaceQuery,
  placeOf: (node: T) => Place,
): Constraint<T>[] {
  const jsonOf = (node: T) => placeOf(node).location_json;
  const constraints: Constraint<T>[] = [];
  if (country != null) {
    const offered = (node: T) => countryNamesOf(jsonOf(node))[0] ?? null;
    const isWanted = (node: T) => isInCountry(jsonOf(node), country);
    constraints.push({ ...oneOf('country', country, offered, isWanted), ...BY_GROUP });
  }
  if (region != null) {
    const offered = (node: T) => regionNamesOf(jsonOf(node))[0] ?? null;
    const isWanted = (node: T) => isInRegion(jsonOf(node), region);
    constraints.push({ ...oneOf('region', region, offered, isWanted), ...BY_GROUP });
  }
  if (miles != null && lat != null && lon != null) {
    const milesTo = (node: T) => distanceTo({ lat, lon }, placeOf(node));
    const nearby = atMost('max_distance_mile', miles, milesTo);
    constraints.push({
      ...nearby,
      // The difference of latitudes is faster to compute, and excludes most nodes.
      keep: (node) => isNearLatitude(placeOf(node), lat, miles) && nearby.keep(node),
      offered: (node) => roundedUp(milesTo(node)),
      index: { by: 'place', area: { lat, lon, miles } },
    });
  }
  return constraints.map((constraint) => ({
    ...constraint,
    isLocated: (node) => constraint.offered(node) !== null,
  }));
}

/** Rounded up, so that a request for this distance accepts the node. */
function roundedUp(miles: number | null): number | null {
  return miles === null ? null : Math.ceil(miles * 10) / 10;
}

/** Returns false only for nodes that are farther away; a node without a latitude counts as near. */
function isNearLatitude(place: Place, lat: number, miles: number): boolean {
  return place.lat === null || Math.abs(place.lat - lat) * MILES_PER_DEGREE <= miles;
}

function distanceTo(from: Coordinates, { lat, lon }: Place): number | null {
  return lat === null || lon === null ? null : distanceMiles(from, { lat, lon });
}

/** Mean radius of the earth in miles. */
const EARTH_RADIUS_MILES = 3958.7613;
/** Distance of two places whose latitudes differ by one degree, rounded down. */
export const MILES_PER_DEGREE = 69;

export type Coordinates = { lat: number; lon: number };

/** Great-circle distance in miles (haversine). */
export function distanceMiles(from: Coordinates, to: Coordinates): number {
  const latDelta = radians(to.lat - from.lat);
  const lonDelta = radians(to.lon - from.lon);
  const chord =
    Math.sin(latDelta / 2) ** 2 +
    Math.cos(radians(from.lat)) * Math.cos(radians(to.lat)) * Math.sin(lonDelta / 2) ** 2;
  return 2 * EARTH_RADIUS_MILES * Math.asin(Math.min(1, Math.sqrt(chord)));
}

function radians(degrees: number): number {
  return (degrees * Math.PI) / 180;
}
