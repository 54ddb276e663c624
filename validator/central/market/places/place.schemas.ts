/** Requests and responses of a node's place. */
import { z } from 'zod';
import { displayName, NaiveTime } from '../../platform/wire.ts';
import { ExecutorLocation, LocationState } from '../executors/executor.schemas.ts';
import { isCountryCode } from './country.ts';

const MAX_NAME = 100;
const MAX_ZIP = 20;

/** Place of a node as its provider enters it. Null means absent. */
export const EnterPlace = z
  .object({
    country_code: z
      .string()
      .trim()
      .toUpperCase()
      .refine(isCountryCode, 'Not a country code of ISO 3166-1, such as DE')
      .meta({ description: 'ISO 3166-1 alpha-2 code, such as DE' }),
    region: z
      .string()
      .trim()
      .toUpperCase()
      .regex(/^[A-Z0-9]{1,3}$/, 'Not the part of an ISO 3166-2 code behind the hyphen, such as BY')
      .nullish()
      .meta({ description: 'Code of the region: ISO 3166-2 without the country, such as BY' }),
    region_name: displayName(MAX_NAME).nullish().meta({ description: 'Name of the region' }),
    city: displayName(MAX_NAME).nullish().meta({ description: 'Name of the city' }),
    zip: displayName(MAX_ZIP).nullish().meta({ description: 'Postal code of the place' }),
    lat: z.number().min(-90).max(90).nullish().meta({
      description: 'Degrees north (WGS 84), required with `lon`; for filters by distance',
    }),
    lon: z.number().min(-180).max(180).nullish().meta({
      description: 'Degrees east (WGS 84), required with `lat`',
    }),
    timezone: z
      .string()
      .max(MAX_NAME)
      .refine(isTimeZone, 'Not a time zone of the IANA database, such as Europe/Berlin')
      .nullish()
      .meta({ description: 'Name in the IANA time zone database, such as Europe/Berlin' }),
  })
  .refine(({ lat, lon }) => (lat == null) === (lon == null), {
    path: ['lat'],
    message: 'Send lat and lon together',
  })
  .meta({
    id: 'EnterPlace',
    example: { country_code: 'DE', region: 'BE', city: 'Berlin', lat: 52.52, lon: 13.41 },
  });
export type EnterPlace = z.output<typeof EnterPlace>;

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/** One comparison of the entered place with a source. */
export const PlaceEvidence = z.object({
  source: z.enum(['address_table', 'round_trip']).meta({
    description:
      '`address_table`: the operator’s table of addresses; `round_trip`: the time that a validator measured, which bounds the distance',
  }),
  result: z.enum(['confirms', 'contradicts', 'undecided']).meta({
    description: '`undecided` if the source neither confirms nor contradicts the place',
  }),
  detail: z.string().meta({ description: 'Description of the comparison, with the figures' }),
});
export type PlaceEvidence = z.output<typeof PlaceEvidence>;

/** The place of a node as its provider sees it. */
export const NodeLocation = z
  .object({
    entered: ExecutorLocation.nullable().meta({
      description: 'Place as entered; null if no place was entered',
    }),
    location_check: LocationState,
    evidence: z
      .array(PlaceEvidence)
      .meta({ description: 'Comparisons; empty if there was nothing to compare' }),
    updated_at: NaiveTime.nullable().meta({ description: 'Time of the last entry or comparison' }),
  })
  .meta({ id: 'NodeLocation', description: 'The place of a node, as its provider sees it.' });
export type NodeLocation = z.output<typeof NodeLocation>;
