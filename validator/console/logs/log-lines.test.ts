import { describe, expect, it } from 'vitest';
import { isRepeat, parseMessages } from './log-lines.ts';

const line = (n: number) =>
  JSON.stringify({ log: `n ${n}\n`, id: `c.${n}.0`, ts: '2026-11-20T00:00:00Z', stream: 'stderr' });

describe('messages', () => {
  it('become lines in their order', () => {
    expect(parseMessages([line(1), '{}', line(2)], 3)).toEqual(
      [1, 2].map((n) => ({
        kind: 'line',
        text: `n ${n}`,
        coloured: null,
        id: `c.${n}.0`,
        at: '2026-11-20T00:00:00Z',
        isError: true,
        source: 3,
      })),
    );
  });

  it.each([
    [{ meta: 'gap', reason: 'rotated away', dropped: 1234 }, true, /^About 1,234 lines/],
    [{ meta: 'gap', reason: 'rotated' }, true, /^Lines may be missing/],
    [{ meta: 'gap', reason: 'another' }, true, /: another\.$/],
    [{ meta: 'gap' }, true, /no reason/],
    [{ meta: 'gap', reason: 'node_lost' }, true, /interrupted/],
    [{ meta: 'restart' }, false, /restarted/],
  ])('%j becomes a mark', (frame, isGap, text) => {
    expect(parseMessages([JSON.stringify(frame)], 0)).toEqual([
      { kind: 'mark', isGap, at: '', text: expect.stringMatching(text), source: 0 },
    ]);
  });

  it('end the log with a reason', () => {
    const end = '{"meta":"end","reason":"pod_deleted"}';
    expect(parseMessages([end], 0)).toEqual([{ kind: 'end', reason: 'pod_deleted' }]);
  });

  it.each(['{', 'null', '7', '"text"', ''])('that are malformed become a gap: %j', (message) => {
    const [first, middle, last] = parseMessages([line(1), message, line(2)], 0);
    expect([first?.kind, middle, last?.kind]).toEqual([
      'line',
      expect.objectContaining({ isGap: true, text: expect.stringContaining('could not be read') }),
      'line',
    ]);
  });
});

describe('a line after a reconnect', () => {
  it.each([
    ['c.5.0', 'c.5.0', true],
    ['c.4.9', 'c.5.0', true],
    ['c.5.1', 'c.5.0', false],
    ['c.10.0', 'c.9.0', false],
    ['c.1700000000000000001.0', 'c.1700000000000000000.0', false],
    ['d.1.0', 'c.5.0', false],
    ['odd', 'odd', true],
    ['odd', 'c.5.0', false],
  ])('with the id %s after %s is a repeat: %s', (id, last, expected) => {
    expect(isRepeat(id, last)).toBe(expected);
  });
});
