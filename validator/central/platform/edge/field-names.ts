/**
 * Rejects misspelt and misplaced fields on routes that cost money or change data. Such routes state
 * `config.fieldNames`. All other routes ignore unknown fields, because clients may send additional fields. Fields that
 * resemble no field of the route are also ignored.
 */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { ApiError, type ValidationIssue } from '#shared/runtime/errors.ts';
import { nearestName } from '#shared/runtime/nearest-name.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    fieldNames?: FieldNames;
  }
}

export type FieldNames = {
  /** Names of a field that are common in other interfaces, with the name in this interface. */
  synonyms?: Readonly<Record<string, string>>;
  /** Fields of another route that would change the cost or the effect of this one, with the name of that route. */
  elsewhere?: Readonly<Record<string, string>>;
  /** Fields of the resource. Clients send them back together with changed fields. */
  echoed?: readonly string[];
  /** Checks only a body without any known field, because clients may send a whole row of another kind. */
  onlyWithoutKnown?: true;
};

/** Names of fields, also by their plain form without case and separators. Synonyms are included. */
type Names = { fields: readonly string[]; byPlain: ReadonlyMap<string, string> };
type Known = FieldNames & { body: Names; query: Names };

/** Minimum length of a name that may differ from a known name by two edits. Shorter names may differ by one edit. */
const SHORT_NAME_CHARS = 5;
/** Maximum number of fields in one error response. */
const MAX_REPORTED = 20;
/**
 * Maximum number of unknown fields of a request that are compared with known fields. A body of another kind may have
 * many unknown fields.
 */
const MAX_COMPARED = 200;

/** Runs before validation, so that a misspelt required field is not reported as missing. */
export function refuseMisnamedFields(server: HttpServer): void {
  /** Names by the configuration of a route, which does not change. */
  const names = new WeakMap<object, Known>();
  server.addHook('preValidation', ({ routeOptions, body, query }, _, done) => {
    const { config, schema } = routeOptions;
    if (config.fieldNames === undefined) return done();
    let known = names.get(config);
    if (known === undefined) {
      known = {
        ...config.fieldNames,
        body: namesOf(fieldsOf(schema?.body), config.fieldNames.synonyms),
        query: namesOf(fieldsOf(schema?.querystring)),
      };
      names.set(config, known);
    }
    const { fields } = known.body;
    const hasKnown = membersOf(body).some(([name]) => fields.includes(name));
    if (known.onlyWithoutKnown === true && hasKnown) return done();
    const issues = [
      ...issuesOf(unknownFields(body, known.body, known.echoed), bodyIssue, known),
      ...issuesOf(unknownFields(query, known.query), queryIssue, known),
    ].slice(0, MAX_REPORTED);
    if (issues.length === 0) return done();
    throw new ApiError('validation_error', 'Request validation failed', {
      hint: `Rename or move ${issues.map(({ field }) => field).join(', ')} and retry.`,
      validationErrors: issues,
    });
  });
}

type Field = readonly [name: string, value: unknown];

function issuesOf(
  fields: readonly Field[],
  issueOf: (known: Known, field: Field) => ValidationIssue | null,
  known: Known,
): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  for (const field of fields) {
    const found = issueOf(known, field);
    if (found !== null) issues.push(found);
    if (issues.length === MAX_REPORTED) break;
  }
  return issues;
}

function bodyIssue(known: Known, [name, value]: Field): ValidationIssue | null {
  const field = `body.${name}`;
  const nearest = meantBy(name, known.body);
  if (nearest !== null) return issue(field, `Unknown field; did you mean ${nearest}?`);
  const route = routeWith(name, known);
  if (route !== null) return issue(field, `Only ${route} has this field.`);
  const inner = membersOf(value).find(([key]) => known.body.fields.includes(key));
  if (inner === undefined) return null;
  return issue(`${field}.${inner[0]}`, `Misplaced field; ${inner[0]} belongs to the body.`);
}

function queryIssue(known: Known, [name]: Field): ValidationIssue | null {
  const field = `query.${name}`;
  const parameter = meantBy(name, known.query);
  if (parameter !== null) return issue(field, `Unknown parameter; did you mean ${parameter}?`);
  const inBody = meantBy(name, known.body);
  if (inBody !== null) return issue(field, `Misplaced field; ${inBody} belongs to the body.`);
  const route = routeWith(name, known);
  return route === null ? null : issue(field, `Only ${route} has this field.`);
}

function routeWith(name: string, { elsewhere = {} }: Known): string | null {
  return Object.hasOwn(elsewhere, name) ? (elsewhere[name] ?? null) : null;
}

function issue(field: string, message: string): ValidationIssue {
  return { field, message, type: 'unknown_field' };
}

/** Returns the first members whose names are neither in `known` nor in `ignored`. Null counts as absent. */
function unknownFields(value: unknown, known: Names, ignored: readonly string[] = []): Field[] {
  return membersOf(value)
    .filter(
      ([name, member]) =>
        member !== null && !known.fields.includes(name) && !ignored.includes(name),
    )
    .slice(0, MAX_COMPARED);
}

function membersOf(value: unknown): Field[] {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? Object.entries(value) : [];
}

function namesOf(
  fields: readonly string[],
  synonyms: Readonly<Record<string, string>> = {},
): Names {
  const named = [...Object.entries(synonyms), ...fields.map((field) => [field, field] as const)];
  return { fields, byPlain: new Map(named.map(([from, to]) => [plainName(from), to])) };
}

/** Returns the known field that `name` resembles; null if there is none. */
function meantBy(name: string, { fields, byPlain }: Names): string | null {
  const plain = plainName(name);
  const exact = byPlain.get(plain);
  if (exact !== undefined) return exact;
  const mostEdits = plain.length < SHORT_NAME_CHARS ? 1 : 2;
  const similar = fields
    .map(plainName)
    .filter((field) => Math.abs(field.length - plain.length) <= mostEdits);
  const nearest = nearestName(plain, similar, mostEdits);
  return nearest === null ? null : (byPlain.get(nearest) ?? null);
}

function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

/** Returns the member names of a route's schema. The schema itself may be optional. */
function fieldsOf(schema: unknown): string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape);
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return fieldsOf(schema.unwrap());
  }
  return [];
}
