import { describe, expect, it } from 'vitest';
import { pageAfterLogIn, paths } from './paths.ts';

describe('paths', () => {
  it('has the first tab of a pod at the pod’s path, and encodes ids', () => {
    expect(paths.pod('a/b')).toBe('/pods/a%2Fb');
    expect(paths.pod('x', 'logs')).toBe('/pods/x/logs');
  });

  it.each([
    ['/pods?status=RUNNING', '/pods?status=RUNNING'],
    ['//evil.example', '/'],
    ['/\\evil.example', '/'],
    ['https://evil.example', '/'],
    ['/log-in?from=/pods', '/'],
    [null, '/'],
  ])('opens after a log-in from %s: %s', (from, page) => {
    expect(pageAfterLogIn(from)).toBe(page);
  });
});
