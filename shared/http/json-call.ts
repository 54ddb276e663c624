/** Calls our public APIs with JSON and parses the answer by a schema. */
import { z } from 'zod';
import { type Clock, systemClock } from '../runtime/clock.ts';
import { messageOf } from '../runtime/errors.ts';
import { boundedText } from './bounded-text.ts';

export type JsonCall = {
  method: 'GET' | 'POST' | 'DELETE';
  url: string;
  headers?: Record<string, string>;
  body?: unknown;
};

const CALL_TIMEOUT_MS = 25_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** The documented error body. */
const ErrorBody = z.object({
  error: z.object({ code: z.string(), message: z.string(), hint: z.string().nullish() }),
  validation_errors: z.array(z.object({ field: z.string(), message: z.string() })).default([]),
});

/** Thrown for an answer with any status other than 2xx. */
export class CallRefused extends Error {
  override name = 'CallRefused';
  readonly status: number;
  /** The error that the API documents; null for another body, such as a proxy's page. */
  readonly problem: { code: string; message: string; hint: string | null } | null;
  constructor(call: JsonCall, status: number, text: string) {
    super(`${call.method} ${call.url}: ${status} ${text}`);
    this.status = status;
    this.problem = problemIn(text);
  }
}

/** Thrown if there is no answer (`isReachable` is false), or an answer that is not this API's. */
export class CallFailed extends Error {
  override name = 'CallFailed';
  readonly isReachable: boolean;
  constructor(call: JsonCall, isReachable: boolean, cause: unknown) {
    super(`${call.method} ${call.url}: ${reasonOf(cause)}`, { cause });
    this.isReachable = isReachable;
  }
}

/** Rejects with CallRefused on any status other than 2xx, and with CallFailed without a valid answer. */
export async function callJson<T>(
  schema: z.ZodType<T>,
  call: JsonCall,
  clock: Clock = systemClock,
): Promise<T> {
  const { response, text } = await send(call, clock).catch((cause: unknown) => {
    throw new CallFailed(call, false, cause);
  });
  if (!response.ok) throw new CallRefused(call, response.status, text);
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new CallFailed(call, true, cause);
  }
}

async function send(call: JsonCall, clock: Clock): Promise<{ response: Response; text: string }> {
  const { method, url, headers = {}, body } = call;
  const response = await fetch(url, {
    method,
    headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: clock.deadline(CALL_TIMEOUT_MS),
  });
  return { response, text: await boundedText(response, MAX_ANSWER_BYTES) };
}

function problemIn(text: string): CallRefused['problem'] {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return null;
  }
  const parsed = ErrorBody.safeParse(content);
  if (!parsed.success) return null;
  const { error, validation_errors: fields } = parsed.data;
  const problems = fields.map(({ field, message }) => `${field}: ${message}`);
  const message = [error.message, ...problems].join('; ');
  return { code: error.code, message, hint: error.hint ?? null };
}

/** Node's fetch reports only "fetch failed"; its cause has the reason. */
function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : { cause: undefined };
  return messageOf(cause ?? error);
}
