import { expect, it } from 'vitest';
import { displayName, displayText } from './wire.ts';

const Name = displayName(20);

it.each(['plain', 'Ünïcödé 名前', 'family 👨‍👩‍👧 and ✈️', '  trimmed  '])(
  'accepts the name %j',
  (text) => {
    expect(Name.parse(text)).toBe(text.trim());
  },
);

it.each([
  ['empty', '   '],
  ['too long', 'x'.repeat(21)],
  ['NUL', 'a\u0000b'],
  ['an escape', '\u001b[31mred'],
  ['a line break', 'two\nlines'],
  ['a direction override', 'a\u202eb'],
  ['half a surrogate pair', '\ud800'],
  ['a byte order mark', 'a\ufeffb'],
])('rejects a name: %s', (_, text) => {
  expect(Name.safeParse(text).success).toBe(false);
});

it('a text may contain line breaks and tabs; other characters that names may not contain are rejected', () => {
  const Text = displayText(20);
  expect(Text.parse('two\r\n\tlines\n')).toBe('two\r\n\tlines\n');
  expect(Text.parse('')).toBe('');
  for (const text of ['x'.repeat(21), 'a\u0000b', '\u001b[31mred', 'a\u202eb', '\ud800']) {
    expect([text, Text.safeParse(text).success]).toEqual([text, false]);
  }
});
