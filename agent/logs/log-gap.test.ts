import { expect, it } from 'vitest';
import { dataFrame } from '#shared/http/event-stream.ts';
import { droppedIn, rotatedAway } from './log-gap.ts';

it('counts the lines that gaps tell of, and takes no line for a gap', () => {
  const line = dataFrame({ log: '{"meta":"gap","dropped":9}\n', id: 'a', ts: 't' });
  const gone = dataFrame({ meta: 'gap', reason: 'older output is gone' });
  expect(droppedIn(line)).toBeNull();
  expect(droppedIn(line + gone)).toBe(0);
  expect(droppedIn(rotatedAway(null))).toBe(0);
  expect(droppedIn(rotatedAway(200) + line + rotatedAway(35) + gone)).toBe(235);
});
