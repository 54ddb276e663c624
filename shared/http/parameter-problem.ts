/** Why a parameter of a query or a path is refused, in plain words: what was given and what is allowed. Pure. */
import { z } from 'zod';

/** Of what was given: enough to know it again. */
const MAX_SHOWN_CHARS = 64;
/** What is given under these names opens something, and stays out of every text. */
const SECRETS: ReadonlySet<string> = new Set(['code', 'signature', 'state', 'ticket', 'token']);
/** How messages of zod's own begin; any other one is the schema's, and says what is allowed. */
const ZODS_OWN = /^(?:Invalid|Too) /;

/** What a schema tells of one parameter, as JSON Schema. */
const Described = z.object({
  type: z.enum(['integer', 'number', 'string']),
  format: z.string().optional(),
  minimum: z.number().optional(),
  exclusiveMinimum: z.number().optional(),
  maximum: z.number().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
});
type Described = z.output<typeof Described>;

/** Allowed values: those of a flag are in the issue alone. */
const Choice = z.object({ values: z.array(z.string()).min(1) });
/** A parameter that may be left out, as JSON Schema. */
const Nullable = z.object({ anyOf: z.tuple([z.unknown(), z.unknown()]) });

export type ParameterIssue = { name: string; given: unknown; message: string; params: unknown };

/** `schema` is that of all the route's parameters of the query or path. */
export function parameterProblem(schema: unknown, issue: ParameterIssue): string {
  const { name, given, message, params } = issue;
  if (Array.isArray(given)) return `Given ${given.length} times; give it once`;
  const shown = SECRETS.has(name) ? 'What was given' : quotedValue(given);
  const allowed = ZODS_OWN.test(message) ? allowedBy(schema, name, params) : null;
  return allowed === null ? `${message}: ${shown}` : `${shown} is not ${allowed}`;
}

/** Text from outside as whoever sent it may see it again. */
export function quotedValue(given: unknown): string {
  const text = String(given);
  if (text.length <= MAX_SHOWN_CHARS) return JSON.stringify(text);
  return `${JSON.stringify(text.slice(0, MAX_SHOWN_CHARS))}… (${text.length} characters)`;
}

/** Null where nothing can be said of it. */
function allowedBy(schema: unknown, name: string, params: unknown): string | null {
  const choice = Choice.safeParse(params);
  if (choice.success) return choiceText(choice.data.values);
  const own = schema instanceof z.ZodObject ? schema.shape[name] : undefined;
  if (!(own instanceof z.ZodType)) return null;
  const json: unknown = z.toJSONSchema(own, { io: 'input', unrepresentable: 'any' });
  const nullable = Nullable.safeParse(json);
  const described = Described.safeParse(nullable.success ? nullable.data.anyOf[0] : json);
  if (!described.success) return null;
  return described.data.type === 'string' ? textText(described.data) : numberText(described.data);
}

function choiceText(values: readonly string[]): string {
  const [only] = values;
  if (values.length === 1) return JSON.stringify(only);
  return `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
}

function textText({ format, minLength = 0, maxLength }: Described): string | null {
  if (format === 'uuid') return 'a UUID';
  return maxLength === undefined ? null : `text of ${minLength} to ${maxLength} characters`;
}

function numberText({ type, minimum, exclusiveMinimum, maximum }: Described): string {
  const kind =
    type === 'integer' ? 'a whole number in decimal digits' : 'a number in decimal notation';
  const above = exclusiveMinimum === undefined ? '' : ` above ${exclusiveMinimum}`;
  return `${kind}${above}${rangeText(boundOf(minimum), boundOf(maximum))}`;
}

function rangeText(least: number | null, most: number | null): string {
  if (least === null) return most === null ? '' : ` up to ${most}`;
  return most === null ? ` from ${least} on` : ` from ${least} to ${most}`;
}

/** That a number is exact is no bound to speak of. */
function boundOf(limit: number | undefined): number | null {
  return limit === undefined || Math.abs(limit) === Number.MAX_SAFE_INTEGER ? null : limit;
}
