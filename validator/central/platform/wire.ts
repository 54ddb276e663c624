/**
 * Schemas that all routes share: times, ids, money and names. `optional` and `withDefault` define how null and absent
 * members are read.
 */
import { z } from 'zod';
import { MICRO_USD_PER_USD, microToUsd } from '#shared/api/money.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';

export { queryNumber } from '#shared/api/query-number.ts';

/** Reads an explicit null as absent. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** Reads null and absent as `fallback`. */
export function withDefault<Schema extends z.ZodType>(
  schema: Schema,
  fallback: Exclude<z.output<Schema>, null | undefined>,
) {
  return schema
    .nullish()
    .meta({ default: fallback })
    .transform((value) => value ?? fallback);
}

/**
 * Control characters, direction overrides and lone surrogates, which disturb terminals, logs and JSON. Joiners of emoji
 * are allowed.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Co}\p{Cn}]|(?!\u200d)\p{Cf}/u;

/** A printable name of 1 to `maxLength` characters; white space at both ends is removed. */
export function displayName(maxLength: number) {
  return z
    .string()
    .trim()
    .min(1)
    .max(maxLength)
    .refine((text) => !UNPRINTABLE.test(text), 'Contains characters that cannot be shown');
}

/** Printable text of up to `maxLength` characters; line breaks and tabs are allowed. */
export function displayText(maxLength: number) {
  return z
    .string()
    .max(maxLength)
    .refine(
      (text) => !UNPRINTABLE.test(text.replaceAll(/[\n\r\t]/g, ' ')),
      'Contains characters that cannot be shown',
    );
}

export const MAX_EMAIL_CHARS = 254;
/** Maximum length of the part before the @ (RFC 5321, section 4.5.3.1.1). */
const MAX_LOCAL_PART = 64;

export const EmailAddress = z
  .string()
  .trim()
  .max(MAX_EMAIL_CHARS)
  .pipe(z.email())
  .refine(
    (text) => text.lastIndexOf('@') <= MAX_LOCAL_PART,
    'More than 64 characters before the @',
  );

/** Time in a response: UTC with microseconds and without offset, in the format of `naiveUtc`. */
export const NaiveTime = z.string().meta({
  description: 'UTC without offset, e.g. 2026-11-20T23:50:00.123456',
});

/** Time in a request, parsed to milliseconds since the epoch. A time without offset is UTC. */
export const IsoTime = z
  .string()
  .max(64)
  .transform((text, context) => {
    const epochMs = parseIsoTime(text);
    if (epochMs !== null) return epochMs;
    context.addIssue({ code: 'custom', message: 'Not an ISO 8601 time' });
    return z.NEVER;
  });

/** A resource's id, converted to lower case. */
export const Uuid = z.uuid().toLowerCase();

/** US dollars as a JSON number with at most 6 decimals. */
export const Usd = z.number().meta({ description: 'USD' });

/** Path parameter of routes with the id of one resource. */
export const IdParams = z.object({ id: Uuid });

/** US dollars in a request, between `min` and `max`, in whole micro-dollars. */
export function usdAmount({ min, max }: { min: number; max: number }) {
  return z
    .number()
    .min(min)
    .max(max)
    .refine((usd) => microToUsd(Math.round(usd * MICRO_USD_PER_USD)) === usd, 'At most 6 decimals')
    .meta({ description: 'USD, at most 6 decimals' });
}
