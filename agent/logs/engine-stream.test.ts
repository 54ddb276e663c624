import { expect, it } from 'vitest';
import { LogFrame } from '#shared/api/agent/pod.ts';
import { createLineFramer } from './engine-stream.ts';
import { MAX_LINE_BYTES } from './log-frames.ts';

const CONTAINER = 'abcdef0123456789';
const TIME = '2026-11-20T23:50:00.000000001Z';
const NS = 1_795_218_600_000_000_001n;
const bytes = (text: string) => new TextEncoder().encode(text);

/** Returns the frames of `data`, pushed in pieces of `size` bytes. */
function framesOf(data: Uint8Array, size = data.length, stream: 'stdout' | 'stderr' = 'stdout') {
  const framer = createLineFramer(CONTAINER);
  const lines = [];
  for (let at = 0; at < data.length; at += size) {
    lines.push(...framer.push({ stream, data: data.subarray(at, at + size) }));
  }
  return [...lines, ...framer.flush()].map((line) => line.frame);
}

it('makes one frame of each line, however the bytes are chunked', () => {
  const data = bytes(`${TIME} one\n${TIME} two\n2026-11-20T23:50:01Z \n`);
  for (const size of [1, 7, 31, 1000]) {
    const frames = framesOf(data, size, 'stderr');
    expect(frames.map((frame) => LogFrame.parse(frame))).toEqual([
      { log: 'one\n', id: `abcdef012345.${NS}.0`, ts: TIME, stream: 'stderr' },
      { log: 'two\n', id: `abcdef012345.${NS}.1`, ts: TIME, stream: 'stderr' },
      {
        log: '\n',
        id: `abcdef012345.${NS + 999_999_999n}.0`,
        ts: '2026-11-20T23:50:01Z',
        stream: 'stderr',
      },
    ]);
  }
});

it('separates the two streams and numbers their lines together', () => {
  const framer = createLineFramer(CONTAINER);
  const push = (stream: 'stdout' | 'stderr', text: string) =>
    framer.push({ stream, data: bytes(text) }).map(({ frame, at }) => [frame.log, at.seq]);
  expect(push('stdout', `${TIME} begun `)).toEqual([]);
  expect(push('stderr', `${TIME} error\n`)).toEqual([['error\n', 0]]);
  expect(push('stdout', 'ended\n')).toEqual([['begun ended\n', 1]]);
});

it('gives lines of the same time different ids, even with another line between them', () => {
  const framer = createLineFramer(CONTAINER);
  const push = (stream: 'stdout' | 'stderr', text: string) =>
    framer.push({ stream, data: bytes(text) }).map((line) => line.frame.id);
  const long = 'x'.repeat(MAX_LINE_BYTES);
  const first = push('stdout', `${TIME} ${long}`);
  const between = push('stderr', '2026-11-20T23:50:00.000000002Z error\n');
  const ids = [...first, ...between, ...push('stdout', 'end\n')];
  expect(new Set(ids).size).toBe(3);
});

it('sends an unfinished line when the stream ends', () => {
  expect(framesOf(bytes(`${TIME} no newline`)).map((frame) => frame.log)).toEqual(['no newline']);
});

it('ends the unfinished line of a stopped container when the next run begins', () => {
  const framer = createLineFramer(CONTAINER);
  framer.push({ stream: 'stdout', data: bytes(`${TIME} killed in mid`) });
  const lines = framer.push({ stream: 'stdout', data: bytes(`${TIME} next run\n`) });
  expect(lines.map((line) => line.frame.log)).toEqual(['killed in mid', 'next run\n']);
});

it('does not strip times that the program prints', () => {
  expect(framesOf(bytes(`${TIME} at ${TIME} it ran\n`))[0]?.log).toBe(`at ${TIME} it ran\n`);
});

it('joins the entries of a long line', () => {
  const entry = 'x'.repeat(16 * 1024);
  const data = bytes(`${TIME} ${entry}${TIME} ${entry}${TIME} end\n${TIME} next\n`);
  for (const size of [100, 4096, data.length]) {
    const logs = framesOf(data, size).map((frame) => frame.log);
    expect(logs).toEqual([`${entry}${entry}end\n`, 'next\n']);
  }
});

it('splits endless lines at 64 KiB between characters', () => {
  const text = `x${'ü'.repeat(MAX_LINE_BYTES)}\n`;
  const frames = framesOf(bytes(`${TIME} ${text}`), 5000);
  expect(frames.map((frame) => frame.log).join('')).toBe(text);
  for (const frame of frames) {
    expect(bytes(frame.log).length).toBeLessThanOrEqual(MAX_LINE_BYTES);
    expect(frame.log).not.toContain('\ufffd');
  }
  expect(new Set(frames.map((frame) => frame.id)).size).toBe(frames.length);
});

it('replaces invalid bytes with U+FFFD and preserves everything else', () => {
  const data = Uint8Array.of(...bytes(`${TIME} a`), 0xff, 0xc3, 0x28, ...bytes('\u0000\ufeffb\n'));
  expect(framesOf(data)[0]?.log).toBe('a\ufffd\ufffd(\u0000\ufeffb\n');
});

it('accepts output without times', () => {
  const frames = framesOf(bytes(`${'no time at all '.repeat(5)}\nshort\n`), 3);
  expect(frames.map((frame) => frame.log)).toEqual([`${'no time at all '.repeat(5)}\n`, 'short\n']);
  expect(new Set(frames.map((frame) => frame.id)).size).toBe(2);
});
