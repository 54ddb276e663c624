import { expect, it } from 'vitest';
import { huidOf } from './executor-response.ts';

it.each([
  ['aa11bb22-cc33-4d44-8e55-ff6677889900', 'zesty-wolf-64'],
  ['AA11BB22-CC33-4D44-8E55-FF6677889900', 'zesty-wolf-64'],
  ['00000000-0000-4000-8000-000000000000', 'gentle-fox-fe'],
])('node %s has the name %s', (id, huid) => {
  expect(huidOf(id)).toBe(huid);
});
