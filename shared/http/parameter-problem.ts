/** Messages for invalid query and path parameters: the given value and what is allowed. Pure. */
import { z } from 'zod';
import { choiceText, ZOD_DEFAULT } from './field-problem.ts';

const MAX_SHOWN_CHARS = 64;
/** Parameters whose values grant access and are never included in a message. */
const SECRETS: ReadonlySet<string> = new Set(['code', 'signature', 'state', 'ticket', 'token']);

/** A parameter's JSON Schema. */
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

/** Allowed values; those of a boolean are only in the issue. */
const Choice = z.object({ values: z.array(z.string()).min(1) });
/** JSON Schema of an optional parameter. */
const Nullable = z.object({ anyOf: z.tuple([z.unknown(), z.unknown()]) });

export type ParameterIssue = { name: string; value: unknown; message: string; params: unknown };

/** `schema` is the schema of all query or path parameters of the route. */
export function parameterProblem(schema: unknown, issue: ParameterIssue): string {
  const { name, value, message, params } = issue;
  if (Array.isArray(value)) return `Given ${value.length} times; give it once`;
  const shown = SECRETS.has(name) ? 'The given value' : quotedValue(value);
  const allowed = ZOD_DEFAULT.test(message) ? allowedBy(schema, name, params) : null;
  return allowed === null ? `${message}: ${shown}` : `${shown} is not ${allowed}`;
}

/** Quotes and truncates a value from a request, for a response to its sender. */
export function quotedValue(value: unknown): string {
  const text = String(value);
  if (text.length <= MAX_SHOWN_CHARS) return JSON.stringify(text);
  return `${JSON.stringify(text.slice(0, MAX_SHOWN_CHARS))}… (${text.length} characters)`;
}

/** Describes the allowed values; null if unknown. */
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

/**
 * Returns the limit to mention; null without a limit, and for the limits of safe integers, which do not help the
 * caller.
 */
function boundOf(limit: number | undefined): number | null {
  return limit === undefined || Math.abs(limit) === Number.MAX_SAFE_INTEGER ? null : limit;
}
