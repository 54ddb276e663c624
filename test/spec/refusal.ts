/** What every refusal of the central API has to look like, and bodies that have to get one. */
import type { LightMyRequestResponse } from 'fastify';
import { expect } from 'vitest';
import { ERROR_TABLE } from '#shared/runtime/errors.ts';
import { errorProfileOf } from '../../validator/central/platform/edge/error-profiles.ts';

/** What would be an inside of ours in a refusal. */
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

/** A known code, a hint, no leak, and never our own failure; `path` decides about the form. What is no refusal passes. */
export function expectRefusal(
  {
    statusCode,
    body: text,
    headers,
  }: Pick<LightMyRequestResponse, 'statusCode' | 'body' | 'headers'>,
  path: string,
  what: string,
): void {
  // 502 and 503: what lies outside does not answer, or is not set up (specification, upstream_unavailable).
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
