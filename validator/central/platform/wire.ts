/** Small shapes that every concept's schemas share: what the wire's conventions look like in zod (contract 2). */
import { z } from 'zod';
import { MICRO_USD_PER_USD, microToUsd } from '#shared/api/money.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';

/** An explicit null counts as absent. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** Absent and null give `fallback`. */
export function withDefault<Schema extends z.ZodType>(
  schema: Schema,
  fallback: Exclude<z.output<Schema>, null | undefined>,
) {
  return schema
    .nullish()
    .meta({ default: fallback })
    .transform((value) => value ?? fallback);
}

/** Control characters, direction overrides and broken pairs spoil terminals, logs and JSON of others; emoji joiners do not. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Co}\p{Cn}]|(?!\u200d)\p{Cf}/u;

/** A name that people read: trimmed, 1 to `maxLength` characters, printable. */
export function displayName(maxLength: number) {
  return z
    .string()
    .trim()
    .min(1)
    .max(maxLength)
    .refine((text) => !UNPRINTABLE.test(text), 'Contains characters that cannot be shown');
}

/** Lines that people read: up to `maxLength` characters, printable but for line breaks and tabs. */
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
/** Before the @ (RFC 5321, 4.5.3.1.1): mail servers refuse more. */
const MAX_LOCAL_PART = 64;

/** An address that mail can be sent to. */
export const EmailAddress = z
  .string()
  .trim()
  .max(MAX_EMAIL_CHARS)
  .pipe(z.email())
  .refine(
    (text) => text.lastIndexOf('@') <= MAX_LOCAL_PART,
    'More than 64 characters before the @',
  );

/** A time going out: naive UTC with microseconds; made by `naiveUtc`. */
export const NaiveTime = z.string().meta({
  description: 'UTC without offset, e.g. 2026-11-20T23:50:00.123456',
});

/** A time coming in, as milliseconds since the epoch; one without an offset counts as UTC. */
export const IsoTime = z
  .string()
  .max(64)
  .transform((text, context) => {
    const epochMs = parseIsoTime(text);
    if (epochMs !== null) return epochMs;
    context.addIssue({ code: 'custom', message: 'Not an ISO 8601 time' });
    return z.NEVER;
  });

/** A resource's id as clients send it; kept and compared in lower case. */
export const Uuid = z.uuid().toLowerCase();

const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/** A number in a query or a path, in decimal notation only; `number` says which ones, and its default if there is one. */
export function queryNumber<Schema extends z.ZodNumber | z.ZodDefault<z.ZodNumber>>(
  number: Schema,
) {
  return z.preprocess(
    (text) => (typeof text === 'string' && DECIMAL.test(text) ? Number(text) : text),
    number,
  );
}

/** US dollars as a JSON number with at most 6 decimals. */
export const Usd = z.number().meta({ description: 'USD' });

/** The path parameter of routes below one resource. */
export const IdParams = z.object({ id: Uuid });

/** US dollars coming in, in these bounds and with at most 6 decimals: what whole micro-dollars can say. */
export function usdAmount({ min, max }: { min: number; max: number }) {
  return z
    .number()
    .min(min)
    .max(max)
    .refine((usd) => microToUsd(Math.round(usd * MICRO_USD_PER_USD)) === usd, 'At most 6 decimals')
    .meta({ description: 'USD, at most 6 decimals' });
}
