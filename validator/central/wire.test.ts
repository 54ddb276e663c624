import { expect, it } from 'vitest';
import { displayName } from './wire.ts';

const Name = displayName(20);

it.each(['plain', 'Ünïcödé 名前', 'family 👨‍👩‍👧 and ✈️', '  trimmed  '])('takes %j', (text) => {
  expect(Name.parse(text)).toBe(text.trim());
});

it.each([
  ['empty', '   '],
  ['too long', 'x'.repeat(21)],
  ['NUL', 'a\u0000b'],
  ['an escape', '\u001b[31mred'],
  ['a line break', 'two\nlines'],
  ['a direction override', 'a\u202eb'],
  ['half a pair', '\ud800'],
  ['a byte order mark', 'a\ufeffb'],
])('refuses %s', (_, text) => {
  expect(Name.safeParse(text).success).toBe(false);
});
