import { describe, expect, it } from 'vitest';
import { LogFrame } from '#shared/api/agent/pod.ts';
import { entryNs, FRESH, flushOpen, parseEntries } from './json-lines.ts';
import { MAX_LINE_BYTES } from './log-frames.ts';

const CONTAINER = 'abcdef012345';
const TIME = '2026-11-20T23:50:00.000000001Z';
const NS = 1_795_218_600_000_000_001n;
const ENTRY_BYTES = 16 * 1024;

function entry(log: string, change: object = {}): string {
  return `${JSON.stringify({ log, stream: 'stdout', time: TIME, ...change })}\n`;
}

/** Returns all frames, including those of unfinished lines. */
function framesOf(...texts: string[]) {
  let state = FRESH;
  let text = '';
  for (const part of texts) {
    const { block, after } = parseEntries(part, CONTAINER, state);
    expect(block.ends.at(-1) ?? 0).toBe(block.text.length);
    expect(block.streams.length).toBe(block.ends.length);
    text += block.text;
    state = after;
  }
  text += flushOpen(CONTAINER, state).block.text;
  const lines = text.split('\n\n').slice(0, -1);
  return lines.map((line) => LogFrame.parse(JSON.parse(line.slice('data: '.length))));
}

const logsOf = (...texts: string[]) =>
  framesOf(...texts).map((frame) => ('log' in frame ? frame.log : '?'));

it('numbers lines of the same time over both streams', () => {
  const later = '2026-11-20T23:50:00.5Z';
  const text =
    entry('one\n') + entry('two\n', { stream: 'stderr' }) + entry('three\n', { time: later });
  const expected = [
    { log: 'one\n', id: `${CONTAINER}.${NS}.0`, ts: TIME, stream: 'stdout' },
    { log: 'two\n', id: `${CONTAINER}.${NS}.1`, ts: TIME, stream: 'stderr' },
    { log: 'three\n', id: `${CONTAINER}.${NS + 499_999_999n}.0`, ts: later, stream: 'stdout' },
  ];
  expect(framesOf(text)).toEqual(expected);
  expect(framesOf(...text.split(/(?<=\n)/))).toEqual(expected);
});

it('continues the numbering of a timestamp after a line with another timestamp', () => {
  const early = '2026-11-20T23:49:59.999999999Z';
  const ids = framesOf(
    entry('a\n') + entry('b\n', { time: early }) + entry('c\n') + entry('d\n', { time: early }),
  );
  expect(ids.map((frame) => ('id' in frame ? frame.id.split('.')[2] : ''))).toEqual([
    '0',
    '0',
    '1',
    '1',
  ]);
});

describe('the text of a line', () => {
  it.each([
    ['quotes', 'say "hello", "stream":"stderr"\n'],
    ['a backslash and an n at the end of a line', 'C:\\n\n'],
    ['control characters and ANSI sequences', '\u0000\u0001\u001b[31mred\u001b[0m\r\n'],
    ['text that looks like a frame', 'data: {"log":"x"}\\n\\n\n'],
    ['other scripts and a byte order mark', '\ufeffgrüße 你好 🎉\n'],
    ['replacement characters from the engine', 'a\ufffd\ufffdb\n'],
    ['an empty line', '\n'],
  ])('is preserved: %s', (_name, log) => {
    expect(logsOf(entry(log) + entry('next\n'))).toEqual([log, 'next\n']);
  });

  it('is decoded from the escapes that the engine writes', () => {
    const text = `{"log":"a \\u003cb\\u003e \\u0026\\u2028\\n","stream":"stdout","time":"${TIME}"}\n`;
    expect(logsOf(text)).toEqual(['a <b> &\u2028\n']);
  });

  it('is found in an entry with attributes', () => {
    const text = `{"log":"x\\n","stream":"stderr","attrs":{"tag":"\\"}\\n"},"time":"${TIME}"}\n`;
    expect(framesOf(text)).toMatchObject([{ log: 'x\n', stream: 'stderr' }]);
  });
});

describe('entries of a long line', () => {
  const part = 'x'.repeat(ENTRY_BYTES);

  it('are joined and have the time of the first, even with the other stream between them', () => {
    const other = entry('between\n', { stream: 'stderr' });
    const end = entry('end\n', { time: '2026-11-20T23:50:01Z' });
    expect(framesOf(entry(part), other, end)).toMatchObject([
      { log: 'between\n' },
      { log: `${part}end\n`, ts: TIME },
    ]);
  });

  it('are split at 64 KiB between characters', () => {
    const wide = 'ü'.repeat(ENTRY_BYTES / 2);
    const logs = logsOf(...Array.from({ length: 9 }, () => entry(wide)), entry('xü\n'));
    expect(logs.join('')).toBe(`${wide.repeat(9)}xü\n`);
    for (const log of logs) expect(Buffer.byteLength(log)).toBeLessThanOrEqual(MAX_LINE_BYTES);
    expect(logs.length).toBe(3);
  });

  it('end with the run of the container: a short entry without newline is not continued', () => {
    expect(logsOf(entry('no newline') + entry('next run\n'))).toEqual(['no newline', 'next run\n']);
    expect(logsOf(entry('ends in a backslash and n: \\n') + entry('next\n'))).toEqual([
      'ends in a backslash and n: \\n',
      'next\n',
    ]);
    expect(logsOf(entry(part))).toEqual([part]);
  });
});

describe('broken entries', () => {
  it('are skipped, and a whole entry in the same line is used', () => {
    const torn = entry('torn by a crash\n').slice(0, 14);
    expect(logsOf(torn + entry('one\n') + entry('two\n'))).toEqual(['one\n', 'two\n']);
    expect(logsOf(`\0\0\0\0${entry('one\n')}`)).toEqual(['one\n']);
  });

  it.each([
    ['not JSON', 'nonsense\n'],
    ['JSON of another type', '[1]\n'],
    ['null', 'null\n'],
    ['an unknown stream', entry('x\n', { stream: 'stdin' })],
    ['an invalid time', entry('x\n', { time: 'yesterday' })],
    ['an empty line', '\n'],
  ])('are skipped: %s', (_name, text) => {
    expect(logsOf(text + entry('one\n'))).toEqual(['one\n']);
  });
});

it('parses times with any number of digits', () => {
  expect(entryNs('2026-11-20T23:50:00Z')).toBe('1795218600000000000');
  expect(entryNs('2026-11-20T23:50:00.12Z')).toBe('1795218600120000000');
  expect(entryNs('2026-11-21T01:50:00.12+02:00')).toBe('1795218600120000000');
  for (const bad of ['', 'Z', '2026-11-20', '2026-11-20T23:50:00.1234567890Z']) {
    expect(entryNs(bad)).toBeNull();
  }
});
