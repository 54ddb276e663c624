import { describe, expect, it } from 'vitest';
import { lineParts, lineText } from './log-text.ts';

describe('the text of a line', () => {
  it.each([
    ['plain\n', 'plain'],
    ['windows\r\n', 'windows'],
    ['a\tb\n', 'a\tb'],
    ['\u001b[31mred\u001b[0m and \u001b[1;38;5;200mpink\u001b[m', 'red and pink'],
    ['10%\r55%\r100%\r\n', '100%'],
    ['\u001b]8;;https://example.com\u0007link\u001b]8;;\u001b\\ text', 'link text'],
    ['\u001b[2K\u001b[1Gdone\u0000\u0008', 'done'],
    ['<b>no markup</b>', '<b>no markup</b>'],
    ['\u001b', ''],
    ['', ''],
  ])('of %j is %j', (log, text) => {
    expect(lineText(log).text).toBe(text);
  });
});

describe('the parts of a line', () => {
  const partsOf = (log: string) => lineParts(lineText(log));

  it('are the whole line without colours', () => {
    expect(partsOf('plain\n')).toEqual([{ text: 'plain', className: '' }]);
  });

  it('have the names of their colours and weights', () => {
    expect(partsOf('a \u001b[1;31mred\u001b[0m \u001b[92;44mgreen\u001b[0m\n')).toEqual([
      { text: 'a ', className: '' },
      { text: 'red', className: 'ansi-fg-red ansi-bold' },
      { text: ' ', className: '' },
      { text: 'green', className: 'ansi-fg-green ansi-bg-blue' },
    ]);
  });

  it('have the text of the line, also with colours that are not shown', () => {
    const log = '\u001b[38;2;1;2;3mx\u001b[48;5;99my\u001b[0mz\u001b[';
    expect(
      partsOf(log)
        .map(({ text }) => text)
        .join(''),
    ).toBe(lineText(log).text);
  });
});
