import { expect, it } from 'vitest';
import { createOutputQueue } from './output-queue.ts';

it('skips output that the screen cannot take, and says how much', () => {
  const screen: string[] = [];
  const pending: (() => void)[] = [];
  const queue = createOutputQueue((bytes, done) => {
    screen.push(typeof bytes === 'string' ? bytes : `${bytes.length}`);
    pending.push(done);
  }, 10);
  const finish = () => {
    for (const done of pending.splice(0)) done();
  };
  queue.push(new Uint8Array(6));
  queue.push(new Uint8Array(4));
  queue.push(new Uint8Array(3));
  queue.push(new Uint8Array(2));
  expect(screen).toEqual(['6', '4']);
  finish();
  expect(screen.slice(2)).toEqual([expect.stringContaining('5 bytes of output were skipped')]);
  queue.push(new Uint8Array(10));
  finish();
  expect(screen.at(-1)).toBe('10');
});
