/** Requests to the central API without a network: the actors', and those of the validator. */
import type { HttpServer } from '#shared/http/server.ts';
import type { OutgoingInit, Transport } from '#shared/tls/transport.ts';
import type { Life } from './life.ts';

export type Answer = { status: number; body: unknown };

export type ApiRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path with prefix. */
  path: string;
  headers?: Record<string, string>;
  body?: object;
};

export type CallApi = (request: ApiRequest) => Promise<Answer>;

export const callerOf =
  (server: HttpServer): CallApi =>
  async ({ method, path, headers = {}, body }) => {
    const response = await server.inject({
      method,
      url: path,
      headers,
      ...(body === undefined ? {} : { payload: body }),
    });
    const text = response.payload;
    return { status: response.statusCode, body: text === '' ? null : JSON.parse(text) };
  };

/** Statuses for which the `Response` constructor requires a null body. */
const BODILESS: readonly number[] = [204, 205, 304];

/** The process of the central API; null if none runs. */
type Reach = () => { life: Life; service: { server: HttpServer } } | null;

/** Transport that reaches the server in this process. `onAnswer` receives the path and status of each request. */
export function transportTo(
  reach: Reach,
  onAnswer: (path: string, status: number) => void,
): Transport {
  return {
    async fetch(url: URL, { method, headers, body, signal }: OutgoingInit) {
      signal?.throwIfAborted();
      const path = `${url.pathname}${url.search}`;
      const process = reach();
      if (process === null) throw new Error('connection refused');
      const { life, service } = process;
      const response = await life.serve(
        service.server.inject({
          method: method as ApiRequest['method'],
          url: path,
          headers,
          ...(body === undefined ? {} : { payload: body }),
        }),
      );
      onAnswer(path, response.statusCode);
      const isEmpty = BODILESS.includes(response.statusCode);
      return new Response(isEmpty ? null : response.payload, { status: response.statusCode });
    },
    close: () => undefined,
  };
}
