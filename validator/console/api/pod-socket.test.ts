import { expect, it } from 'vitest';
import { refusalOf } from './pod-socket.ts';

it.each([
  [
    { code: 4429, reason: 'rate_limited' },
    { status: 429, code: 'rate_limited' },
  ],
  [
    { code: 4404, reason: '' },
    { status: 404, code: 'status_404' },
  ],
])('%j reports a refusal', (closed, facts) => {
  expect(refusalOf(closed)?.facts).toMatchObject({ ...facts, hint: expect.stringMatching(/\w/) });
});

it.each([1000, 1006, 3000, 4000, 4999])('%i reports none', (code) => {
  expect(refusalOf({ code, reason: 'x' })).toBeNull();
});
