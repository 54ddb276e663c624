import { expect, it } from 'vitest';
import { visibleLength, visibleParts } from './hidden-characters.ts';

it.each([
  ['plain', [['plain', null]]],
  ['', [['', null]]],
  [
    'safe\u202Egnp.exe',
    [
      ['safe', null],
      ['\u202E', 'U+202E'],
      ['gnp.exe', null],
    ],
  ],
  [
    '\u2066\u200Bx\u00AD',
    [
      ['\u2066', 'U+2066'],
      ['\u200B', 'U+200B'],
      ['x', null],
      ['\u00AD', 'U+00AD'],
    ],
  ],
  ['\u{E0041}', [['\u{E0041}', 'U+E0041']]],
  // Right-to-left scripts and joined emoji stay as they are.
  ['\u05D0\u05D1 \u{1F469}\u200D\u{1F4BB}', [['\u05D0\u05D1 \u{1F469}\u200D\u{1F4BB}', null]]],
])('names the characters without a picture of %j', (text, parts) => {
  expect(visibleParts(text).map((part) => [part.text, part.code])).toEqual(parts);
});

it('keeps the text, and counts what is shown', () => {
  const text = 'a\u202Eb\u2069';
  expect(
    visibleParts(text)
      .map((part) => part.text)
      .join(''),
  ).toBe(text);
  expect(visibleLength('plain')).toBe(5);
  expect(visibleLength(text)).toBe('aU+202EbU+2069'.length);
});
