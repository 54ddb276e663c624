/** Compares the place that a provider entered with the evidence. Pure. */
import type { RoundTrip } from '#shared/api/central/validator-routes.ts';
import type { LocationCheck } from '../../platform/database/tables/executors.ts';
import type { AddressPlace } from '../../platform/ports.ts';
import type { ExecutorLocation } from '../executors/executor.schemas.ts';
import { type Coordinates, distanceMiles } from '../executors/place-constraints.ts';
import { countryName } from './country.ts';
import type { EnterPlace, PlaceEvidence } from './place.schemas.ts';

const KM_PER_MILE = 1.609344;
/** Speed of light in a vacuum. No signal is faster, in any cable. */
const KM_PER_MS = 299.792_458;
/** Maximum distance from the validator that a round trip must prove to confirm a place. */
const NEAR_KM = 200;
/** Error of coordinates that a provider enters, which may be those of a city, and of a validator's coordinates. */
const ENTERED_SLACK_KM = 50;
/** Error of coordinates in address tables, in addition to the radius that the tables state. */
const TABLE_SLACK_KM = 250;

/** Available evidence about a node. */
export type PlaceFacts = { address: AddressPlace | null; roundTrips: readonly RoundTrip[] };

/** Converts the place to the form in responses. */
export function locationFrom(entered: EnterPlace): ExecutorLocation {
  return {
    country: countryName(entered.country_code),
    country_code: entered.country_code,
    region: entered.region ?? null,
    region_name: entered.region_name ?? null,
    city: entered.city ?? null,
    zip: entered.zip ?? null,
    lat: entered.lat ?? null,
    lon: entered.lon ?? null,
    timezone: entered.timezone ?? null,
  };
}

export function comparePlace(place: ExecutorLocation, facts: PlaceFacts): PlaceEvidence[] {
  return [
    ...(facts.address === null ? [] : [withAddress(place, facts.address)]),
    ...facts.roundTrips.map((trip) => withRoundTrip(place, trip)),
  ];
}

/** Returns the result of all comparisons: one contradiction outweighs any number of confirmations. */
export function checkOf(evidence: readonly PlaceEvidence[]): LocationCheck {
  const results = evidence.map(({ result }) => result);
  if (results.includes('contradicts')) return 'contradicted';
  return results.includes('confirms') ? 'confirmed' : 'entered';
}

function withAddress(place: ExecutorLocation, found: AddressPlace): PlaceEvidence {
  const source = 'address_table';
  const countries = `entered ${place.country_code}, address table ${found.countryCode}`;
  if (place.country_code !== found.countryCode) {
    return { source, result: 'contradicts', detail: countries };
  }
  const entered = coordinatesOf(place);
  const listed = coordinatesOf(found);
  if (entered === null || listed === null) {
    return { source, result: 'confirms', detail: countries };
  }
  const km = kilometres(entered, listed);
  const withinKm = (found.accuracyKm ?? 0) + TABLE_SLACK_KM;
  // Address tables list many addresses in the wrong city, so a distance alone contradicts nothing.
  const result = km <= withinKm ? 'confirms' : 'undecided';
  const detail = `${countries}; ${Math.round(km)} km apart, ${withinKm} km allowed`;
  return { source, result, detail };
}

function withRoundTrip(place: ExecutorLocation, trip: RoundTrip): PlaceEvidence {
  const source = 'round_trip';
  const mostKm = (trip.ms / 2) * KM_PER_MS;
  const measured = `${trip.ms} ms: at most ${Math.ceil(mostKm)} km from the validator`;
  const entered = coordinatesOf(place);
  if (entered === null) {
    return { source, result: 'undecided', detail: `${measured}; no coordinates were entered` };
  }
  const km = kilometres(entered, trip);
  const detail = `${measured}; the entered place is ${Math.round(km)} km away`;
  if (km > mostKm + ENTERED_SLACK_KM) return { source, result: 'contradicts', detail };
  return { source, result: mostKm <= NEAR_KM ? 'confirms' : 'undecided', detail };
}

function kilometres(from: Coordinates, to: Coordinates): number {
  return distanceMiles(from, to) * KM_PER_MILE;
}

function coordinatesOf({ lat, lon }: { lat: number | null; lon: number | null }) {
  return lat === null || lon === null ? null : { lat, lon };
}
