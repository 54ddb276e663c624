/** Walks along the response schemas of an OpenAPI document. Pure. */
import { z } from 'zod';

const JsonSchema = z.looseObject({
  get anyOf(): z.ZodOptional<z.ZodArray<typeof JsonSchema>> {
    return z.array(JsonSchema).optional();
  },
  get properties(): z.ZodOptional<z.ZodRecord<z.ZodString, typeof JsonSchema>> {
    return z.record(z.string(), JsonSchema).optional();
  },
  get items(): z.ZodOptional<z.ZodUnion<readonly [typeof JsonSchema, z.ZodBoolean]>> {
    return z.union([JsonSchema, z.boolean()]).optional();
  },
  get additionalProperties(): z.ZodOptional<
    z.ZodUnion<readonly [typeof JsonSchema, z.ZodBoolean]>
  > {
    return z.union([JsonSchema, z.boolean()]).optional();
  },
  $ref: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  required: z.array(z.string()).optional(),
});
export type JsonSchema = z.output<typeof JsonSchema>;

const Response = z.looseObject({
  content: z.record(z.string(), z.looseObject({ schema: JsonSchema.optional() })).optional(),
});
const Operation = z.looseObject({ responses: z.record(z.string(), Response) });
export const ResponseDocument = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.looseObject({ schemas: z.record(z.string(), JsonSchema).default({}) }),
});
export type ResponseDocument = z.output<typeof ResponseDocument>;

/** `METHOD /path` of every operation. */
export function operationsOf({ paths }: ResponseDocument): string[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
}

/** The JSON schema of an operation's 2xx response; null for one without a JSON body. */
export function responseSchemaOf(document: ResponseDocument, operation: string): JsonSchema | null {
  const [method = '', path = ''] = operation.split(' ');
  const responses = document.paths[path]?.[method.toLowerCase()]?.responses ?? {};
  const success = Object.keys(responses).find((status) => status.startsWith('2'));
  return responses[success ?? '']?.content?.['application/json']?.schema ?? null;
}

/**
 * Fields of all JSON responses that may be null or absent, as `Model.field` or `METHOD /path.field`; `[]` marks items of
 * arrays and `{}` values of maps. Items themselves are not listed: null in a series is a gap.
 */
export function looseFieldsOf(document: ResponseDocument): Set<string> {
  const found = new Set<string>();
  const seen = new Set<string>();

  function visit(schema: JsonSchema, place: string): void {
    const model = modelOf(schema);
    if (model !== null) {
      if (seen.has(model)) return;
      seen.add(model);
      visit(resolved(document, schema), model);
      return;
    }
    for (const option of schema.anyOf ?? []) visit(option, place);
    const { items, additionalProperties: values } = schema;
    if (typeof items === 'object') visit(items, `${place}[]`);
    if (typeof values === 'object') visit(values, `${place}{}`);
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const key = `${place}.${name}`;
      const isOptional = schema.required?.includes(name) !== true;
      if (isOptional || isNullable(document, property)) found.add(key);
      visit(property, key);
    }
  }

  for (const operation of operationsOf(document)) {
    const schema = responseSchemaOf(document, operation);
    if (schema === null) continue;
    if (isNullable(document, schema)) found.add(operation);
    visit(schema, operation);
  }
  return found;
}

/** Places of a response where it has null or lacks a member although its schema does not allow it. */
export function departures(
  document: ResponseDocument,
  schema: JsonSchema,
  value: unknown,
  place = '',
): string[] {
  const { anyOf, items, properties = {}, required = [], ...rest } = resolved(document, schema);
  // A schema without any restriction describes members that the interface does not name.
  if (value === null && Object.keys(schema).length === 0) return [];
  if (value === null) return isNullable(document, schema) ? [] : [`${place} is null`];
  if (anyOf !== undefined) {
    const options = anyOf
      .filter((option) => !isNull(option))
      .map((option) => departures(document, option, value, place));
    return options.toSorted((a, b) => a.length - b.length)[0] ?? [];
  }
  if (Array.isArray(value)) {
    return typeof items === 'object'
      ? value.flatMap((item, index) => departures(document, items, item, `${place}[${index}]`))
      : [];
  }
  if (typeof value !== 'object' || value === undefined) return [];
  const members = value as Record<string, unknown>;
  const missing = required.filter((name) => members[name] === undefined);
  const { additionalProperties: values } = rest;
  const inside = Object.entries(members).flatMap(([name, member]) => {
    const property = properties[name] ?? (typeof values === 'object' ? values : null);
    return property === null ? [] : departures(document, property, member, `${place}.${name}`);
  });
  return [...missing.map((name) => `${place}.${name} is missing`), ...inside];
}

function resolved(document: ResponseDocument, schema: JsonSchema): JsonSchema {
  const model = modelOf(schema);
  return model === null ? schema : (document.components.schemas[model] ?? {});
}

function modelOf({ $ref }: JsonSchema): string | null {
  return $ref === undefined ? null : $ref.slice($ref.lastIndexOf('/') + 1);
}

/** Returns true for a schema that allows null by name. */
function isNullable(document: ResponseDocument, schema: JsonSchema): boolean {
  const own = resolved(document, schema);
  return (
    isNull(own) ||
    (Array.isArray(own.type) && own.type.includes('null')) ||
    (own.anyOf ?? []).some((option) => isNullable(document, option))
  );
}

function isNull({ type }: JsonSchema): boolean {
  return type === 'null';
}
