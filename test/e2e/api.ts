/** Calls the marketplace's API with the demo account's key. */
import { systemClock } from '#shared/runtime/clock.ts';
import type { DemoFile } from '../../validator/embedded/demo-file.ts';

export type ApiAnswer = { status: number; headers: Headers; body: unknown };

/** Returns the response of any status; its body must be JSON, as every body of the interface is. */
export async function api(
  demo: DemoFile,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<ApiAnswer> {
  const response = await fetch(demo.base_url + path, {
    method,
    headers: {
      'X-API-Key': demo.account.api_key,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: systemClock.deadline(30_000),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}
