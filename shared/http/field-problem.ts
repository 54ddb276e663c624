/** Messages for invalid fields of a body: what the field must be, in place of zod's terms. Pure. */
import { z } from 'zod';

/** Matches zod's default messages. Any other message is from the schema and already states what is allowed. */
export const ZOD_DEFAULT = /^(?:Invalid|Too|Unrecognized) /;

/** An issue of zod, as the compiler of schemas reports it: `keyword` is its code, `params` has its other members. */
export type FieldIssue = { keyword: string; message: string; params: unknown };

/** Returns a sentence without the name of the field, for example “Must have at most 100 characters”. */
export function fieldProblem({ keyword, message, params }: FieldIssue): string {
  if (!ZOD_DEFAULT.test(message)) return message;
  return SENTENCES[keyword]?.(params) ?? OTHER;
}

const OTHER = 'Does not have an allowed form';
/** Limits of what a message repeats of the body. */
const MAX_KEYS = 10;
const MAX_KEY_CHARS = 64;

type Sentence = (params: unknown) => string | null;

/** Returns a sentence for issues whose parameters match the schema. */
function sentence<Params>(schema: z.ZodType<Params>, write: (params: Params) => string | null) {
  return (params: unknown): string | null => {
    const { success, data } = schema.safeParse(params);
    return success ? write(data) : null;
  };
}

const Limit = z.union([z.number(), z.bigint()]).transform(Number);
const Least = z.object({ origin: z.string(), minimum: Limit, inclusive: z.boolean().optional() });
const Most = z.object({ origin: z.string(), maximum: Limit, inclusive: z.boolean().optional() });

/** By the code of the issue. */
const SENTENCES: Readonly<Record<string, Sentence>> = {
  invalid_type: sentence(z.object({ expected: z.string() }), ({ expected }) => {
    const kind = KINDS[expected];
    return kind === undefined ? null : `Must be ${kind}`;
  }),
  too_small: sentence(Least, ({ origin, minimum, inclusive = true }) => {
    if (!SIZED.has(origin)) return `Must be ${inclusive ? 'at least' : 'above'} ${minimum}`;
    return minimum === 1 ? 'Must not be empty' : `Must have at least ${sizeText(origin, minimum)}`;
  }),
  too_big: sentence(Most, ({ origin, maximum, inclusive = true }) => {
    if (!SIZED.has(origin)) return `Must be ${inclusive ? 'at most' : 'below'} ${maximum}`;
    return maximum === 0 ? 'Must be empty' : `Must have at most ${sizeText(origin, maximum)}`;
  }),
  invalid_format: sentence(z.object({ format: z.string() }), ({ format }) => {
    const kind = FORMATS[format];
    return kind === undefined ? null : `Must be ${kind}`;
  }),
  invalid_value: sentence(z.object({ values: z.array(z.unknown()) }), ({ values }) => {
    return `Must be ${choiceText(values.map(String))}`;
  }),
  not_multiple_of: sentence(z.object({ divisor: Limit }), ({ divisor }) => {
    return `Must be a multiple of ${divisor}`;
  }),
  unrecognized_keys: sentence(z.object({ keys: z.array(z.string()) }), ({ keys }) => {
    const shown = keys.slice(0, MAX_KEYS).map((key) => key.slice(0, MAX_KEY_CHARS));
    return `Unknown fields: ${shown.join(', ')}`;
  }),
  // The issue of a record contains that of its key.
  invalid_key: sentence(
    z.object({ issues: z.array(z.object({ message: z.string() })) }),
    ({ issues: [inner] }) =>
      inner === undefined || ZOD_DEFAULT.test(inner.message) ? null : inner.message,
  ),
};

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/** Kinds of values whose limits are those of their size. */
const SIZED: ReadonlySet<string> = new Set(['string', 'array', 'set']);

function sizeText(origin: string, count: number): string {
  if (origin === 'string') return count === 1 ? '1 character' : `${count} characters`;
  return count === 1 ? '1 entry' : `${count} entries`;
}

const FORMATS: Readonly<Record<string, string>> = {
  email: 'an e-mail address',
  url: 'a URL',
  uuid: 'a UUID',
  guid: 'a UUID',
  datetime: 'a time such as 2026-11-01T00:00:00Z',
  date: 'a date such as 2026-11-01',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
};

/** Lists values as “a, b or c”. */
export function choiceText(values: readonly string[]): string {
  if (values.length <= 1) return JSON.stringify(values[0] ?? '');
  return `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
}
