/**
 * Completes the generated OpenAPI description: shortens model names, removes unused models, and adds errors to every
 * operation. Pure.
 */
import { errorProfileOf } from '../edge/error-profiles.ts';
import { WELL_FORMED, WINDOW_MS } from '../idempotency/idempotency.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

const MODELS = '#/components/schemas/';
/** Suffix that the generator appends to the copy of a model that requests use. */
const REQUEST_SUFFIX = 'Input';

const JSON_TYPE = 'application/json';
/**
 * Extension of an operation that contains the texts of its errors by status. The result does not contain the extension.
 */
const ERRORS = 'x-errors';
/** Extension of an operation that requires no credential and reports an invalid key. Removed like `x-errors`. */
const KEY_STATUS = 'x-key-status';
/** Description that the generator writes for a response without a description. */
const UNNAMED = 'Default Response';
const ERROR_MODEL = 'ErrorResponse';
const FLAT_MODEL = 'FlatErrorResponse';
/** Status whose error schema is used for all client errors. */
const CLIENT_ERROR = 422;
/** Status whose error schema is used for internal errors. */
const INTERNAL_ERROR = 500;
const text = (description: string) => ({ type: 'string', description });
const REQUEST_ID =
  'Id of the request, also in the header X-Request-Id. State it when you ask for help.';
const MESSAGE = 'Description of the error, as a sentence.';
const ErrorResponse: JsonObject = {
  type: 'object',
  required: [
    ...['success', 'error', 'message', 'status_code', 'error_id', 'request_id', 'timestamp'],
    ...['api_context', 'validation_errors', 'details'],
  ],
  properties: {
    success: { const: false, description: 'Always false.' },
    error: {
      type: 'object',
      description: 'The error, for programs.',
      required: ['code', 'message', 'hint', 'request_id'],
      properties: {
        code: text('Stable code of the error.'),
        message: text(MESSAGE),
        hint: text('Recommended action, as a sentence.'),
        request_id: text(REQUEST_ID),
      },
    },
    message: text(MESSAGE),
    status_code: { type: 'integer', description: 'HTTP status of the response.' },
    error_id: {
      type: ['string', 'null'],
      description: 'The request id for a 5xx error; null for other errors.',
    },
    request_id: text(REQUEST_ID),
    timestamp: text('Time of the response (UTC).'),
    api_context: { type: 'null', description: 'Always null.' },
    validation_errors: {
      type: 'array',
      description: 'Fields that failed validation; empty unless the status is 422.',
      items: {
        type: 'object',
        required: ['field', 'message', 'type'],
        properties: {
          field: text('Path of the field; it starts with body, path, query or header.'),
          message: text('Problem of the field, and the value that was sent.'),
          type: text('Kind of the failure, for example `missing`.'),
        },
      },
    },
    details: {
      type: ['object', 'null'],
      description: 'Further data of the error, which depend on the code; null if there are none.',
    },
  },
};

/** Error body of the older route groups. */
const FlatErrorResponse: JsonObject = {
  type: 'object',
  required: ['success', 'message'],
  properties: {
    success: { const: false, description: 'Always false.' },
    message: text(MESSAGE),
  },
};

/**
 * Merges the two copies of a model that requests and responses use. Throws if the copies differ in more than
 * `additionalProperties`, because such a model needs two names. `prefix` is the prefix of all paths.
 */
export function plainModels<Document extends object>(document: Document, prefix = ''): Document {
  const source = JSON.parse(JSON.stringify(document)) as JsonObject;
  const components = objectAt(source, 'components');
  const all = objectAt(components, 'schemas');
  const paths = objectAt(source, 'paths');
  const plainOf = (name: string) => plainName(name, all);

  const models: JsonObject = {};
  for (const name of namesInUse(paths, all)) {
    const model = renamed(all[name] ?? {}, plainOf);
    const plain = plainOf(name);
    const present = models[plain];
    if (present !== undefined && !equal(present, model)) {
      throw new Error(`the model ${plain} differs between requests and responses`);
    }
    models[plain] = model;
  }
  const described = describedPaths(renamed(paths, plainOf) as JsonObject, { prefix, models });
  models[ERROR_MODEL] = ErrorResponse;
  if (namesInUse(described, {}).has(FLAT_MODEL)) models[FLAT_MODEL] = FlatErrorResponse;
  const sorted = Object.entries(models).sort(([a], [b]) => (a < b ? -1 : 1));
  const ordered = {
    ...source,
    paths: described,
    components: { ...components, schemas: Object.fromEntries(sorted) },
  };
  return ordered as unknown as Document;
}

/** Returns `X` for `XInput` if a model `X` exists. */
function plainName(name: string, all: JsonObject): string {
  const base = name.slice(0, -REQUEST_SUFFIX.length);
  return name.endsWith(REQUEST_SUFFIX) && Object.hasOwn(all, base) ? base : name;
}

/** Returns the names of the models that the paths reference, directly or through other models. */
function namesInUse(paths: JsonObject, all: JsonObject): Set<string> {
  const found = new Set<string>();
  const visit = (value: Json): void => {
    if (Array.isArray(value)) value.forEach(visit);
    else if (value !== null && typeof value === 'object') {
      for (const [key, child] of Object.entries(value)) {
        const name = key === '$ref' ? modelOf(child) : null;
        if (name === null) visit(child);
        else if (!found.has(name)) {
          found.add(name);
          visit(all[name] ?? {});
        }
      }
    }
  };
  visit(paths);
  return found;
}

/**
 * Returns a deep copy in which references have the shortened names. The copy does not contain `additionalProperties:
 * false`, because members may be added at any time.
 */
function renamed(value: Json, plainOf: (name: string) => string): Json {
  if (Array.isArray(value)) return value.map((child) => renamed(child, plainOf));
  if (value === null || typeof value !== 'object') return value;
  const result: JsonObject = {};
  for (const [key, child] of Object.entries(value)) {
    if (key === 'additionalProperties' && child === false) continue;
    const name = key === '$ref' ? modelOf(child) : null;
    result[key] = name === null ? renamed(child, plainOf) : `${MODELS}${plainOf(name)}`;
  }
  return result;
}

type Context = { prefix: string; models: JsonObject };

/** Adds errors, and examples of the bodies. A path that equals the prefix becomes the path `/`. */
function describedPaths(paths: JsonObject, { prefix, models }: Context): JsonObject {
  const result: JsonObject = {};
  for (const [path, item] of Object.entries(paths)) {
    const operations = Object.entries(item as JsonObject).map(([method, operation]) => [
      method,
      withErrors(withExample(operation as JsonObject, models), `${prefix}${path}`),
    ]);
    result[path === '' ? '/' : path] = Object.fromEntries(operations);
  }
  return result;
}

/** Copies the example of the body's model to the operation, because viewers show the operation's example. */
function withExample(operation: JsonObject, models: JsonObject): JsonObject {
  const body = objectAt(operation, 'requestBody');
  const content = objectAt(body, 'content');
  const media = objectAt(content, JSON_TYPE);
  const schema = objectAt(media, 'schema');
  const [name] = namesInUse(schema, {});
  const { example } = name === undefined ? schema : objectAt(models, name);
  if (example === undefined) return operation;
  const withIt = { ...content, [JSON_TYPE]: { ...media, example } };
  return { ...operation, requestBody: { ...body, content: withIt } };
}

function withErrors(
  { [ERRORS]: errors = {}, [KEY_STATUS]: reportsKey = false, ...operation }: JsonObject,
  path: string,
): JsonObject {
  const takesInput = 'parameters' in operation || 'requestBody' in operation;
  const hasBody = 'requestBody' in operation;
  const isGuarded = needsCredential(operation['security'] ?? []);
  const own = errors as JsonObject;
  const error = (description: string, schema: JsonObject): JsonObject => ({
    description,
    content: { [JSON_TYPE]: { schema } },
  });
  const at = (status: number, description: string) => {
    const text = own[status];
    const whole = typeof text === 'string' ? `${description}\n\n${text}` : description;
    return { [status]: error(whole.trim(), errorSchema(path, status)) };
  };
  const refusal = errorSchema(path, CLIENT_ERROR);
  const failure = errorSchema(path, INTERNAL_ERROR);
  const either = equal(refusal, failure) ? refusal : { anyOf: [refusal, failure] };
  const isOnce = takesKey(operation['parameters']);
  const answers = namedAnswers(objectAt(operation, 'responses'));
  return {
    ...operation,
    responses: {
      ...withHeaders(answers, {
        ...(isOnce ? REPLAY_HEADERS : {}),
        ...(reportsKey === true ? KEY_STATUS_HEADERS : {}),
      }),
      ...Object.assign({}, ...Object.keys(own).map((status) => at(Number(status), ''))),
      ...(hasBody ? at(400, 'The body is not JSON') : {}),
      ...(isGuarded ? at(401, 'No valid credential') : {}),
      ...(isOnce ? at(409, IN_PROGRESS) : {}),
      ...(takesInput ? at(422, isOnce ? KEY_REFUSED : 'A field failed validation') : {}),
      ...at(INTERNAL_ERROR, 'An unexpected error. State its request id when you ask for help'),
      default: error('Any other error', either),
    },
  };
}

/** Replaces the generator's description of responses that have no description. */
function namedAnswers(answers: JsonObject): JsonObject {
  const entries = Object.entries(answers).map(([status, answer]) => {
    const { description, ...rest } = answer as JsonObject;
    return [status, { description: description === UNNAMED ? 'Success' : description, ...rest }];
  });
  return Object.fromEntries(entries);
}

function withHeaders(answers: JsonObject, headers: JsonObject): JsonObject {
  if (Object.keys(headers).length === 0) return answers;
  const entries = Object.keys(answers).map((status) => [
    status,
    { ...objectAt(answers, status), headers },
  ]);
  return Object.fromEntries(entries);
}

function errorSchema(path: string, status: number): JsonObject {
  const isFlat = errorProfileOf(path, status) === 'flat';
  return { $ref: `${MODELS}${isFlat ? FLAT_MODEL : ERROR_MODEL}` };
}

/** Returns false if one of the requirements is empty, because then no credential is required. */
function needsCredential(security: Json): boolean {
  if (!Array.isArray(security) || security.length === 0) return false;
  return security.every((entry) => Object.keys(entry ?? {}).length > 0);
}

function modelOf(reference: Json): string | null {
  const isModel = typeof reference === 'string' && reference.startsWith(MODELS);
  return isModel ? reference.slice(MODELS.length) : null;
}

function equal(a: Json, b: Json): boolean {
  return canonical(a) === canonical(b);
}

function canonical(value: Json): string {
  return JSON.stringify(value, (_, child: Json) => {
    if (child === null || typeof child !== 'object' || Array.isArray(child)) return child;
    return Object.fromEntries(Object.entries(child).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

function objectAt(parent: JsonObject, key: string): JsonObject {
  const value = parent[key];
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : {};
}

const KEY_HEADER = 'Idempotency-Key';
const HOURS = WINDOW_MS / 3_600_000;

/** Request headers of routes with `config.once`, as JSON schema. */
export const ONCE_HEADERS = {
  type: 'object',
  properties: {
    [KEY_HEADER]: {
      type: 'string',
      pattern: WELL_FORMED.source,
      description: `The request runs once per key. For ${HOURS} hours, a repeated request with the same key receives the first response again, with the header Idempotent-Replayed.`,
    },
  },
};

/** Response headers of routes with `config.once`. */
export const REPLAY_HEADERS = {
  'Idempotent-Replayed': {
    schema: { type: 'string', const: 'true' },
    description:
      'Set only on a response that was stored for an earlier request with the same Idempotency-Key.',
  },
};

/** Response headers of routes that require no credential. */
export const KEY_STATUS_HEADERS = {
  'X-API-Key-Status': {
    schema: { type: 'string', const: 'invalid' },
    description:
      'Set only if the request has an X-API-Key that is not valid. The response is that to a request without a key.',
  },
};

export const IN_PROGRESS =
  'The first request with this Idempotency-Key is still running (idempotency_in_progress, retry after the time in Retry-After), or there is another conflict';
export const KEY_REFUSED = `A field failed validation, the Idempotency-Key is malformed (idempotency_key_invalid), or it was used for another request within ${HOURS} hours (idempotency_key_reused)`;

/** Returns true if the operation has the Idempotency-Key header. */
export function takesKey(parameters: unknown): boolean {
  return (
    Array.isArray(parameters) &&
    parameters.some((entry: { name?: unknown; in?: unknown } | null) => {
      return entry?.in === 'header' && entry.name === KEY_HEADER;
    })
  );
}
