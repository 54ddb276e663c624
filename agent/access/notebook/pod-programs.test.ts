import { expect, it } from 'vitest';
import { createTail, lastLines } from './pod-programs.ts';

it('returns the last lines without terminal sequences', () => {
  const tail = createTail();
  for (let line = 0; line < 10_000; line += 1) tail.add(Buffer.from(`line ${line}\n`));
  tail.add(Buffer.from('\x1b[31mERROR\x1b[0m: 10 %\r50 %\r\nlast\x07\n\n'));
  const shown = lastLines(tail.all()).split('\n');
  expect(shown.slice(-4)).toEqual(['line 9999', 'ERROR: 10 %', '50 %', 'last']);
  expect(shown).toHaveLength(15);
});
