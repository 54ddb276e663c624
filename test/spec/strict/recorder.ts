/**
 * Sends the requests of the scripted day as a client does, parses every answer with a strict model, and collects what
 * such a client would reject. Each answer is also compared with the schema of its OpenAPI document.
 */
import type { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { compare, type ResponseDocument, responseSchemaOf } from '../response-fields.ts';

export type Sent = {
  /** Values of the path's parameters. */
  params?: Record<string, string>;
  query?: Record<string, string | number>;
  headers?: Record<string, string>;
  body?: unknown;
};

/** Sends `METHOD /path` of a document and returns the parsed answer, or the raw one if the model rejects it. */
export type Call = <Model extends z.ZodType>(
  operation: string,
  model: Model,
  sent?: Sent,
) => Promise<z.output<Model>>;

export type Recorder = {
  call: Call;
  /** Operations that answered with a 2xx. */
  visited: ReadonlySet<string>;
  /** Places of lists that had an item. */
  filled: ReadonlySet<string>;
  problems: readonly string[];
};

const MAX_PROBLEMS_PER_CALL = 10;

export function createRecorder(
  server: HttpServer,
  { prefix, document }: { prefix: string; document: ResponseDocument },
): Recorder {
  const visited = new Set<string>();
  const filled = new Set<string>();
  const problems: string[] = [];

  const call: Call = async (operation, model, { params = {}, query, headers = {}, body } = {}) => {
    const [method = '', template = ''] = operation.split(' ');
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = params[name];
      if (value === undefined) throw new Error(`${operation}: no value for {${name}}`);
      return encodeURIComponent(value);
    });
    const search = query === undefined ? '' : `?${new URLSearchParams(textsOf(query))}`;
    const answer = await server.inject({
      method: method as 'GET',
      url: `${prefix}${path}${search}`,
      headers,
      ...(body === undefined ? {} : { payload: body as object }),
    });
    if (answer.statusCode >= 300) {
      throw new Error(`${operation}: ${answer.statusCode} ${answer.body}`);
    }
    visited.add(operation);
    const value: unknown = answer.json();
    const parsed = model.safeParse(value);
    const schema = responseSchemaOf(document, operation);
    const place = { value: '', schema: operation };
    const compared = schema === null ? null : compare(document, schema, value, place);
    for (const list of compared?.filled ?? []) filled.add(list);
    const found = [
      ...(parsed.error?.issues ?? []).map((issue) => `${issue.path.join('.')}: ${issue.message}`),
      ...(compared?.problems ?? []),
    ];
    problems.push(...found.slice(0, MAX_PROBLEMS_PER_CALL).map((text) => `${operation} ${text}`));
    return (parsed.success ? parsed.data : value) as z.output<typeof model>;
  };

  return { call, visited, filled, problems };
}

function textsOf(query: Record<string, string | number>): Record<string, string> {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
}
