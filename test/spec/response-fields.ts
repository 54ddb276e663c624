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

/** Places in responses: `Model.field` or `METHOD /path.field`; `[]` marks items of arrays and `{}` values of maps. */
export type ResponsePlaces = {
  /** Fields that may be null or absent. Items are not listed: null in a series is a gap. */
  loose: Set<string>;
  lists: Set<string>;
};

/** Places of all JSON responses of a document. */
export function placesOf(document: ResponseDocument): ResponsePlaces {
  const loose = new Set<string>();
  const lists = new Set<string>();
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
    if (typeof items === 'object') {
      lists.add(place);
      visit(items, `${place}[]`);
    }
    if (typeof values === 'object') visit(values, `${place}{}`);
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const key = `${place}.${name}`;
      const isOptional = schema.required?.includes(name) !== true;
      if (isOptional || isNullable(document, property)) loose.add(key);
      visit(property, key);
    }
  }

  for (const operation of operationsOf(document)) {
    const schema = responseSchemaOf(document, operation);
    if (schema === null) continue;
    if (isNullable(document, schema)) loose.add(operation);
    visit(schema, operation);
  }
  return { loose, lists };
}

export type Comparison = {
  /** Places of the value that are null, of another type or lack a member although the schema does not allow it. */
  problems: string[];
  /** Places of lists with at least one item, in the notation of `ResponsePlaces`. */
  filled: string[];
};

const NOTHING: Comparison = { problems: [], filled: [] };

/** Compares a response with its schema. `place` names the value, and its schema in the notation of `ResponsePlaces`. */
export function compare(
  document: ResponseDocument,
  schema: JsonSchema,
  value: unknown,
  place: { value: string; schema: string },
): Comparison {
  const at = { ...place, schema: modelOf(schema) ?? place.schema };
  const inner = (of: JsonSchema, member: unknown, part: string, kind = part) =>
    compare(document, of, member, { value: at.value + part, schema: at.schema + kind });
  const own = resolved(document, schema);
  const { anyOf, items, properties = {}, required = [], additionalProperties: values } = own;
  // A schema without any restriction describes members that the interface does not name.
  if (value === null && Object.keys(schema).length === 0) return NOTHING;
  if (value === null) {
    return isNullable(document, schema)
      ? NOTHING
      : { ...NOTHING, problems: [`${at.value} is null`] };
  }
  if (anyOf !== undefined) {
    const options = anyOf
      .filter((option) => !isNull(option))
      .map((option) => inner(option, value, ''));
    return options.toSorted((a, b) => a.problems.length - b.problems.length)[0] ?? NOTHING;
  }
  if (!isOfType(own, value)) return { ...NOTHING, problems: [`${at.value} is no ${own.type}`] };
  if (Array.isArray(value)) {
    if (typeof items !== 'object' || value.length === 0) return NOTHING;
    const found = value.map((item, index) => inner(items, item, `[${index}]`, '[]'));
    return merged([{ problems: [], filled: [at.schema] }, ...found]);
  }
  if (typeof value !== 'object' || value === undefined) return NOTHING;
  const members = value as Record<string, unknown>;
  const missing = required.filter((name) => members[name] === undefined);
  const found = Object.entries(members).map(([name, member]) => {
    const property = properties[name];
    if (property !== undefined) return inner(property, member, `.${name}`);
    return typeof values === 'object' ? inner(values, member, `.${name}`, '{}') : NOTHING;
  });
  const problems = missing.map((name) => `${at.value}.${name} is missing`);
  return merged([{ problems, filled: [] }, ...found]);
}

function merged(parts: readonly Comparison[]): Comparison {
  return {
    problems: parts.flatMap(({ problems }) => problems),
    filled: [...new Set(parts.flatMap(({ filled }) => filled))],
  };
}

function resolved(document: ResponseDocument, schema: JsonSchema): JsonSchema {
  const model = modelOf(schema);
  return model === null ? schema : (document.components.schemas[model] ?? {});
}

function modelOf({ $ref }: JsonSchema): string | null {
  return $ref === undefined ? null : $ref.slice($ref.lastIndexOf('/') + 1);
}

/** Returns true for a schema that allows null explicitly. */
function isNullable(document: ResponseDocument, schema: JsonSchema): boolean {
  const own = resolved(document, schema);
  return (
    isNull(own) ||
    (Array.isArray(own.type) && own.type.includes('null')) ||
    (own.anyOf ?? []).some((option) => isNullable(document, option))
  );
}

/** Returns true if the value has one of the schema's types, or if the schema states no type. */
function isOfType({ type }: JsonSchema, value: unknown): boolean {
  const types = [type ?? []].flat();
  const own = Array.isArray(value) ? 'array' : typeof value;
  return (
    types.length === 0 ||
    types.includes(own) ||
    (types.includes('integer') && Number.isInteger(value))
  );
}

function isNull({ type }: JsonSchema): boolean {
  return type === 'null';
}
