/** Calls the public API with JSON and parses the answer by a schema. */
import type { z } from 'zod';
import { type Clock, systemClock } from '#shared/runtime/clock.ts';

export type JsonCall = {
  method: 'GET' | 'POST' | 'DELETE';
  url: string;
  headers?: Record<string, string>;
  body?: unknown;
};

const CALL_TIMEOUT_MS = 25_000;

/** Thrown for an answer with any status other than 2xx. */
export class CallRefused extends Error {
  override name = 'CallRefused';
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Rejects with CallRefused on any status other than 2xx. */
export async function callJson<T>(
  schema: z.ZodType<T>,
  call: JsonCall,
  clock: Clock = systemClock,
): Promise<T> {
  const response = await fetch(call.url, {
    method: call.method,
    headers: {
      ...call.headers,
      ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
    signal: clock.deadline(CALL_TIMEOUT_MS),
  });
  const text = await response.text();
  if (!response.ok) {
    throw new CallRefused(
      response.status,
      `${call.method} ${call.url}: ${response.status} ${text}`,
    );
  }
  return schema.parse(JSON.parse(text));
}
