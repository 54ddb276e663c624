/** The console has words for people for every error code of the API. */
import { expect, it } from 'vitest';
import { ERROR_TABLE } from '#shared/runtime/errors.ts';
import { failureFrom } from '../../../validator/console/api/failure.ts';
import { describeFailure } from '../../../validator/console/parts/failure-words.ts';

/** Words of the API in the texts of errors: requests, headers, members of a request, credentials, ids of routes. */
const FOR_PROGRAMS =
  /\b(?:GET|POST|PUT|PATCH|DELETE)\b|\/\w+\/|\bX-|Idempotency|Retry-After|HTTP|\b(?:body|path|query|header)\b|credential|resource|audience|endpoint|JSON/i;

it.each(Object.entries(ERROR_TABLE))('%s', (code, { status, hint }) => {
  const failure = failureFrom(status, { code, detail: 'It failed', hint }, 'r1');
  const words = describeFailure(failure);
  expect(words.hint).not.toMatch(FOR_PROGRAMS);
  expect(words.hint).toMatch(/^[A-Z].+\.$/);
});
