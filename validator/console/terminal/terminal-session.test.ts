import { describe, expect, it } from 'vitest';
import { endText, exitCodeIn } from './terminal-session.ts';

describe('the last message of a shell', () => {
  it.each([
    ['{"type":"exit","code":7}', 7],
    ['{"type":"exit"}', null],
    ['{"type":"other","code":7}', null],
    ['{', null],
    ['7', null],
  ])('%s has the status %s', (message, code) => {
    expect(exitCodeIn(message)).toBe(code);
  });
});

describe('the end of a shell', () => {
  it.each([
    [0, 1000, 'exit', 'The shell has ended with status 0.'],
    [null, 1000, 'pod_deleted', 'The pod was deleted.'],
    [null, 1000, '', 'The shell has ended.'],
    [null, 1006, '', expect.stringContaining('cannot be resumed')],
    [null, 1011, 'upstream_unavailable', expect.stringContaining('connection was lost')],
  ])('with status %s, code %i and reason %j is explained', (status, code, reason, text) => {
    expect(endText(status, { code, reason })).toEqual(text);
  });
});
