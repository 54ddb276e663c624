import { expect, it } from 'vitest';
import { dataFrame } from '#shared/http/event-stream.ts';
import { countFrames, parseFrameId, rotatedAway } from './log-frames.ts';

const NS = 1_795_218_600_000_000_001n;

it('sums the lines that gap frames report, and ignores log lines that look like gaps', () => {
  const line = dataFrame({ log: '{"meta":"gap","dropped":9}\n', id: 'a', ts: 't' });
  const gone = dataFrame({ meta: 'gap', reason: 'older output is gone' });
  const droppedIn = (text: string) => countFrames(text).dropped;
  expect(droppedIn(line)).toBeNull();
  expect(droppedIn(line + gone)).toBe(0);
  expect(droppedIn(rotatedAway(null))).toBe(0);
  expect(droppedIn(rotatedAway(200) + line + rotatedAway(35) + gone)).toBe(235);
});

it('counts lines, and ignores frames quoted in a line', () => {
  const line = dataFrame({ log: 'data: {"log":"me"}\n', id: 'a', ts: 't' });
  const text = line + rotatedAway(7) + line + dataFrame({});
  expect(countFrames(text)).toEqual({ bytes: Buffer.byteLength(text), lines: 2, dropped: 7 });
  expect(countFrames(dataFrame({}))).toMatchObject({ lines: 0, dropped: null });
});

it('parses frame ids and rejects everything else', () => {
  expect(parseFrameId(`abcdef012345.${NS}.7`)).toEqual({
    container: 'abcdef012345',
    at: { ns: NS, seq: 7 },
  });
  for (const id of ['', 'abc', 'ABCDEF012345.1.0', 'abcdef012345.1', 'abcdef012345.-1.0']) {
    expect(parseFrameId(id)).toBeNull();
  }
});
