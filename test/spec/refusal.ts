/** Checks that apply to every error response of the central API, and bodies that it must reject. */
import type { LightMyRequestResponse } from 'fastify';
import { expect } from 'vitest';
import { ERROR_TABLE } from '#shared/runtime/errors.ts';
import { errorProfileOf } from '../../validator/central/platform/edge/error-profiles.ts';

/** Internals that an error must not reveal. */
const LEAK = /node_modules|\.ts\b|\bat \w+ \(|SQLITE|sqlite|select .* from|\/home|\/root\/|stack/i;
export const HOSTILE = [
  '{',
  'null',
  '[]',
  '"text"',
  '{"__proto__":{"admin":true}}',
  '{"pod_name":{"$gt":""},"email":[],"name":12,"template_id":"\'; drop table pods; --"}',
  `{"name":"${'n'.repeat(200_000)}"}`,
  `"${'x'.repeat(1024 * 1024 + 1)}"`,
];

/**
 * Expects a documented code and a hint, no internals and never a 500; `path` selects the form of the body. Successful
 * responses pass.
 */
export function expectRefusal(
  {
    statusCode,
    body: text,
    headers,
  }: Pick<LightMyRequestResponse, 'statusCode' | 'body' | 'headers'>,
  path: string,
  what: string,
): void {
  // 502 and 503: a dependency does not respond or is not configured.
  expect([what, statusCode < 500 || [502, 503].includes(statusCode)]).toEqual([what, true]);
  if (statusCode < 400) return;
  expect([what, text.match(LEAK)?.[0]]).toEqual([what, undefined]);
  const body = JSON.parse(text);
  expect([what, body.success]).toEqual([what, false]);
  if (errorProfileOf(path, statusCode) === 'flat') {
    const flat = { success: false, message: expect.stringMatching(/\w/) };
    expect([what, body]).toEqual([what, flat]);
    return;
  }
  expect([what, Object.keys(ERROR_TABLE)]).toEqual([
    what,
    expect.arrayContaining([body.error.code]),
  ]);
  expect([what, body.error.hint]).toEqual([what, expect.stringMatching(/\w+ \w+/)]);
  expect([what, body.request_id]).toEqual([what, headers['x-request-id']]);
}
