import { expect, it } from 'vitest';
import { clientVersionOf, sourceOf } from './user-credentials.ts';

it.each([
  ['cli', 'api_key', 'cli'],
  ['SDK', 'api_key', 'sdk'],
  ['Mcp', 'session', 'mcp'],
  ['ui', 'api_key', 'ui'],
  ['programmatic', 'session', 'ui'],
  ['robot', 'api_key', 'programmatic'],
  ['cli, cli', 'api_key', 'programmatic'],
  ['', 'session', 'ui'],
  [undefined, 'api_key', 'programmatic'],
  [undefined, 'session', 'ui'],
] as const)('records X-Source %s with %s as %s', (stated, credential, source) => {
  const headers = stated === undefined ? {} : { 'x-source': stated };
  expect(sourceOf(headers, credential)).toBe(source);
});

it.each([
  ['1.2.3', '1.2.3'],
  ['0.10.0-rc.1+build.5', '0.10.0-rc.1+build.5'],
  ['1.2', null],
  ['v1.2.3', null],
  ['01.2.3', null],
  ['1.2.3, 1.2.3', null],
  [`1.2.3-${'x'.repeat(64)}`, null],
  [undefined, null],
])('parses client version %s as %s', (stated, kept) => {
  const headers = stated === undefined ? {} : { 'x-lium-client-version': stated };
  expect(clientVersionOf(headers)).toBe(kept);
});
