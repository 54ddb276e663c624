/** Finds parts of an OpenAPI document without a description or an example. Pure. */
import { z } from 'zod';

const Schema = z.looseObject({
  $ref: z.string().optional(),
  description: z.string().default(''),
  properties: z.record(z.string(), z.unknown()).default({}),
  items: z.unknown().optional(),
  additionalProperties: z.unknown().optional(),
  anyOf: z.array(z.unknown()).default([]),
  oneOf: z.array(z.unknown()).default([]),
  allOf: z.array(z.unknown()).default([]),
});
const Media = z.object({ schema: z.unknown(), example: z.unknown().optional() });
const Content = z.record(z.string(), Media);
type Content = z.output<typeof Content>;
const Parameter = z.object({
  name: z.string(),
  in: z.string(),
  description: z.string().default(''),
  example: z.unknown().optional(),
});
const Operation = z.object({
  summary: z.string().default(''),
  description: z.string().default(''),
  parameters: z.array(Parameter).default([]),
  requestBody: z.object({ content: Content }).optional(),
  responses: z.record(z.string(), z.object({ content: Content.optional() })),
});
export type Operation = z.output<typeof Operation>;

export const DocumentedInterface = z.object({
  servers: z.array(z.object({ url: z.string() })).min(1),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
});
export type DocumentedInterface = z.output<typeof DocumentedInterface>;

const JSON_TYPE = 'application/json';
const SHORTEST_TEXT = 2;
const CALLER = '**Caller:** ';
const RETRY = '**Retry:** ';

/** Returns `METHOD /path` of each operation, with the prefix of its server, and the operation. */
export function operationsOf({ servers, paths }: DocumentedInterface) {
  const prefix = servers[0]?.url ?? '';
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      url: `${prefix}${path}`,
      name: `${method.toUpperCase()} ${prefix}${path}`,
      operation,
    })),
  );
}

/** Returns a line for each text that an operation lacks: its summary, effects, caller, retries, parameters, schemas. */
export function undescribedOperations(document: DocumentedInterface): string[] {
  return operationsOf(document).flatMap(({ name, operation }) => {
    const { summary, description, parameters, requestBody, responses } = operation;
    const bodies = requestBody === undefined ? [] : [requestBody];
    const contents: { content?: Content | undefined }[] = [...bodies, ...Object.values(responses)];
    const media = contents.flatMap(({ content = {} }) => Object.values(content));
    const lacks: [what: string, isThere: boolean][] = [
      ['summary', isText(summary) && summary.length <= 80],
      ['description', isText(description) && !description.startsWith('**')],
      ['caller', description.includes(CALLER)],
      ['retry', description.includes(RETRY)],
      ['content of its success', hasContent(responses)],
      ...parameters.map((parameter): [string, boolean] => [
        `${parameter.in} ${parameter.name}`,
        isText(parameter.description),
      ]),
    ];
    const isDescribed = describedModels(document);
    return [
      ...lacks.filter(([, isThere]) => !isThere).map(([what]) => `${name}: ${what}`),
      ...media.flatMap(({ schema }) => undescribedFields(schema, name, isDescribed)),
    ];
  });
}

/** Returns `Model.field` for each field of a model that has no description. */
export function undescribedModels(document: DocumentedInterface): string[] {
  const isDescribed = describedModels(document);
  return Object.entries(document.components.schemas).flatMap(([name, schema]) =>
    undescribedFields(schema, name, isDescribed),
  );
}

/** Returns a predicate of references: true for a model with a description. */
function describedModels({ components }: DocumentedInterface): (reference: string) => boolean {
  return (reference) => {
    const model = Schema.safeParse(components.schemas[reference.split('/').at(-1) ?? '']);
    return model.success && isText(model.data.description);
  };
}

/** Returns a line for each request without an example: a JSON body, or a query with parameters. */
export function requestsWithoutExample(document: DocumentedInterface): string[] {
  return operationsOf(document).flatMap(({ name, operation }) => {
    const media = operation.requestBody?.content[JSON_TYPE];
    const query = queryOf(operation);
    return [
      ...(media !== undefined && media.example === undefined ? [`${name}: body`] : []),
      ...(query.length > 0 && query.every(({ example }) => example === undefined)
        ? [`${name}: query`]
        : []),
    ];
  });
}

export type Example = { body: unknown; query: Record<string, string> };

/** Returns the example of a request; null if the operation has neither a JSON body nor a query. */
export function exampleOf(operation: Operation): Example | null {
  const body = operation.requestBody?.content[JSON_TYPE]?.example;
  const query = queryOf(operation).filter(({ example }) => example !== undefined);
  if (body === undefined && query.length === 0) return null;
  const values = query.map(({ name, example }) => [name, String(example)]);
  return { body, query: Object.fromEntries(values) };
}

/** Returns the names of the fields of a JSON body; empty without one. */
export function bodyFieldsOf(document: DocumentedInterface, { requestBody }: Operation): string[] {
  return fieldsOf(document, requestBody?.content[JSON_TYPE]?.schema);
}

/**
 * Returns the names of the fields in a schema. Follows references and alternatives: a body may be null, or one of
 * several models.
 */
function fieldsOf({ components, ...document }: DocumentedInterface, schema: unknown): string[] {
  const parsed = Schema.safeParse(schema);
  if (!parsed.success) return [];
  const { $ref, properties, anyOf, oneOf, allOf } = parsed.data;
  const model = $ref === undefined ? [] : [components.schemas[$ref.split('/').at(-1) ?? '']];
  return [
    ...Object.keys(properties),
    ...[...model, ...anyOf, ...oneOf, ...allOf].flatMap((each) =>
      fieldsOf({ components, ...document }, each),
    ),
  ];
}

function queryOf({ parameters }: Operation) {
  return parameters.filter((parameter) => parameter.in === 'query');
}

/**
 * Returns the paths of fields without a description. References are not followed, because every model is examined
 * separately, and a model's description also describes the fields that refer to the model.
 */
function undescribedFields(
  value: unknown,
  path: string,
  isDescribed: (reference: string) => boolean,
): string[] {
  const parsed = Schema.safeParse(value);
  if (!parsed.success || parsed.data.$ref !== undefined) return [];
  const { properties, items, additionalProperties, anyOf, oneOf, allOf } = parsed.data;
  const own = Object.entries(properties).flatMap(([name, property]) => {
    const { description, $ref } = Schema.parse(property);
    const hasText = isText(description) || ($ref !== undefined && isDescribed($ref));
    const place = `${path}.${name}`;
    return [...(hasText ? [] : [place]), ...undescribedFields(property, place, isDescribed)];
  });
  const inner = [items, additionalProperties, ...anyOf, ...oneOf, ...allOf];
  return [...own, ...inner.flatMap((schema) => undescribedFields(schema, path, isDescribed))];
}

function hasContent(responses: Operation['responses']): boolean {
  const good = Object.entries(responses).filter(([status]) => /^[12]/.test(status));
  return good.length > 0 && good.every(([, { content = {} }]) => Object.keys(content).length > 0);
}

function isText(text: string): boolean {
  return text.trim().split(/\s+/).length >= SHORTEST_TEXT;
}
