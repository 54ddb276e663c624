import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LogFrame } from '#shared/agent-api/pod.ts';
import { systemClock } from '#shared/clock.ts';
import { createLogWriter, type LogWriter } from '../../test/fakes/log-writer.ts';
import { createSeededRandom } from '../../test/fakes/seeded-random.ts';
import { type LogFile, openLogFile } from './log-file.ts';
import { parseFrameId } from './log-frames.ts';
import {
  type Start,
  selectLines,
  startAfterFrame,
  startAtOldest,
  startAtTail,
  startAtTime,
} from './log-seek.ts';

const CONTAINER = 'abcdef0123456789';
const SHORT = 'abcdef012345';
/** 2026-02-01T00:00:00Z */
const FEBRUARY_MS = 1_769_904_000_000;

let folder: string;
let path: string;
let writer: LogWriter;
let open: LogFile[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-logs-'));
  path = join(folder, 'x-json.log');
  writer = createLogWriter(path);
  open = [];
});
afterEach(async () => {
  await Promise.all(open.map((log) => log.close()));
  rmSync(folder, { recursive: true });
});

async function openLog(): Promise<LogFile> {
  const log = await openLogFile(path, CONTAINER, systemClock);
  open.push(log);
  return log;
}

function framesOf(text: string): LogFrame[] {
  const frames = text.split('\n\n').slice(0, -1);
  return frames.map((frame) => LogFrame.parse(JSON.parse(frame.slice('data: '.length))));
}

/** What is there for the reader at `start`: its lines without newlines, and `<gap>`s. */
async function read(log: LogFile, start: Start, stream: 'stdout' | 'stderr' | null = null) {
  return (await readFrames(log, start, stream)).map((frame) =>
    'log' in frame ? frame.log.trimEnd() : '<gap>',
  );
}

async function readFrames(log: LogFile, start: Start, stream: 'stdout' | 'stderr' | null = null) {
  const frames: LogFrame[] = [];
  for (;;) {
    const { block, next, atEnd, gap } = await log.read(start.cursor);
    start.cursor = next;
    if (gap !== null) frames.push({ meta: 'gap', dropped: gap.dropped ?? 0 });
    frames.push(...framesOf(selectLines(block, start, stream)));
    if (atEnd) return frames;
  }
}

const write = (...lines: string[]) => {
  for (const line of lines) writer.write(`${line}\n`);
};

describe('rotation', () => {
  it('hides nothing that was written just before it', async () => {
    write('one');
    const log = await openLog();
    const start = startAtOldest(log);
    expect(await read(log, start)).toEqual(['one']);
    write('two');
    writer.rotate();
    write('three');
    expect(await read(log, start)).toEqual(['two', 'three']);
  });

  it('can be met between its two steps', async () => {
    write('one');
    const log = await openLog();
    const start = startAtOldest(log);
    expect(await read(log, start)).toEqual(['one']);
    write('two');
    writer.shift();
    expect(await read(log, start)).toEqual(['two']);
    writer.create();
    write('three');
    expect(await read(log, start)).toEqual(['three']);
  });

  it('can have begun when the log is opened', async () => {
    write('one');
    writer.rotate();
    write('two');
    writer.shift();
    const opening = openLog();
    await systemClock.sleep(1);
    writer.create();
    write('three');
    const log = await opening;
    expect(await read(log, startAtOldest(log))).toEqual(['one', 'two', 'three']);
  });

  it('twice between two reads loses nothing, and a line may go over it', async () => {
    const part = 'x'.repeat(16 * 1024);
    write('one');
    const log = await openLog();
    const start = startAtOldest(log);
    expect(await read(log, start)).toEqual(['one']);
    writer.write(part);
    writer.rotate();
    write('end', 'two');
    writer.rotate();
    write('three');
    expect(await read(log, start)).toEqual([`${part}end`, 'two', 'three']);
  });

  it('loses nothing to a reader who stands in an older file', async () => {
    write('one');
    writer.rotate();
    write('two');
    writer.rotate();
    write('three');
    const log = await openLog();
    const start = startAtOldest(log);
    const reader = startAtOldest(log);
    expect(await read(log, reader)).toEqual(['one', 'two', 'three']);
    writer.rotate();
    write('four');
    expect(await read(log, reader)).toEqual(['four']);
    expect(await read(log, start)).toEqual(['one', 'two', 'three', 'four']);
  });

  it('more often than files are kept is told, with about as many lines as are lost', async () => {
    for (let n = 0; n < 1000; n += 1) write(`line ${n}`);
    const log = await openLog();
    const start = startAtOldest(log);
    await read(log, start);
    // In one go: nothing of it can be noticed before the end.
    for (let rotation = 0; rotation < 5; rotation += 1) {
      writer.rotate();
      for (let n = 0; n < 100; n += 1) write(`later ${rotation} ${n}`);
    }
    const frames = await readFrames(log, start);
    expect(frames[0]).toMatchObject({ meta: 'gap' });
    const dropped = frames[0] !== undefined && 'dropped' in frames[0] ? frames[0].dropped : 0;
    expect(dropped).toBeGreaterThan(150);
    expect(dropped).toBeLessThan(250);
    expect(frames[1]).toMatchObject({ log: 'later 2 0\n' });
    expect(frames.length).toBe(301);
  });

  it('is told to a reader who was lapped, though others were not', async () => {
    write('one');
    const log = await openLog();
    const slow = startAtOldest(log);
    const quick = startAtOldest(log);
    for (const line of ['two', 'three', 'four', 'five', 'six']) {
      expect((await read(log, quick)).length).toBe(1);
      writer.rotate();
      write(line);
    }
    expect(await read(log, quick)).toEqual(['six']);
    // The first is still in the ring.
    expect(await read(log, slow)).toEqual(['one', '<gap>', 'three', 'four', 'five', 'six']);
  });
});

describe('the file', () => {
  it('may be emptied where the engine keeps one only', async () => {
    write('one', 'two', 'three');
    const log = await openLog();
    const start = startAtOldest(log);
    await read(log, start);
    writer.truncate();
    expect(await read(log, start)).toEqual(['<gap>']);
    write('four');
    expect(await read(log, start)).toEqual(['four']);
    writer.truncate();
    write('a line that goes beyond where the reader was, so that only its start can tell');
    expect((await read(log, start))[0]).toBe('<gap>');
  });

  it('may be removed: what was written is still read', async () => {
    write('one');
    const log = await openLog();
    const start = startAtOldest(log);
    await read(log, start);
    write('last words');
    writer.remove();
    expect(await read(log, start)).toEqual(['last words']);
    expect(await read(log, start)).toEqual([]);
  });

  it('has to be there at first', async () => {
    writer.remove();
    await expect(openLogFile(path, CONTAINER, systemClock)).rejects.toThrow('does not exist');
    await expect(openLogFile(`${path}/x`, CONTAINER, systemClock)).rejects.toThrow();
  });

  it('may end in half an entry, which is read when it is whole, and left out when it never is', async () => {
    const log = await openLog();
    const start = startAtOldest(log);
    const whole = writer.entry('whole\n', 'stdout');
    writer.writeRaw(whole.slice(0, 20));
    expect(await read(log, start)).toEqual([]);
    writer.writeRaw(whole.slice(20));
    expect(await read(log, start)).toEqual(['whole']);
    writer.writeRaw(whole.slice(0, 20));
    writer.rotate();
    write('next');
    expect(await read(log, start)).toEqual(['next']);
  });
});

it('wakes its readers when the engine writes', async () => {
  const log = await openLog();
  const start = startAtOldest(log);
  const waits: number[] = [];
  for (let n = 0; n < 20; n += 1) {
    await read(log, start);
    const changed = log.changed();
    const beganMs = systemClock.monotonicMs();
    write(`line ${n}`);
    if (n % 5 === 4) writer.rotate();
    await changed;
    waits.push(systemClock.monotonicMs() - beganMs);
    expect((await read(log, start)).length).toBe(1);
  }
  expect(waits.toSorted((a, b) => a - b)[10]).toBeLessThan(100);
});

it('reads once for all who are at the same place', async () => {
  write('one');
  const log = await openLog();
  const { cursor } = startAtOldest(log);
  const [first, second] = await Promise.all([log.read(cursor), log.read({ ...cursor })]);
  expect(second).toBe(first);
  expect(await log.read({ ...cursor })).toBe(first);
  const [end, again] = await Promise.all([log.read(first.next), log.read(first.next)]);
  expect(again).toBe(end);
  write('two');
  expect((await log.read(first.next)).block.ends.length).toBe(1);
});

describe('a place in the log', () => {
  const LINES = 30_000;

  /** Three files of several search steps each; every third line is of the other stream. */
  async function manyLines(): Promise<LogFile> {
    const entries: string[] = [];
    const flush = () => writer.writeRaw(entries.splice(0).join(''));
    for (let n = 1; n <= LINES; n += 1) {
      const stream = n % 3 === 0 ? 'stderr' : 'stdout';
      entries.push(writer.entry(`line ${n} ${'.'.repeat(n % 100)}\n`, stream));
      if (n % 10_000 === 0) flush();
      if (n === 10_000 || n === 20_000) writer.rotate();
    }
    return openLog();
  }

  const numberOf = (frame: LogFrame | undefined) =>
    frame !== undefined && 'log' in frame ? Number(frame.log.split(' ')[1]) : -1;

  it('is found from the end', async () => {
    const log = await manyLines();
    for (const tail of [0, 1, 2, 100, 9_999, 10_000, 10_001, 25_000, LINES, LINES + 5]) {
      const frames = await readFrames(log, await startAtTail(log, tail, null));
      expect(frames.length).toBe(Math.min(tail, LINES));
      if (tail > 0) expect(numberOf(frames[0])).toBe(Math.max(1, LINES - tail + 1));
      if (tail > 0) expect(numberOf(frames.at(-1))).toBe(LINES);
    }
  });

  it('is found from the end of one stream', async () => {
    const log = await manyLines();
    for (const tail of [0, 1, 4_000, 10_000, 20_000]) {
      const start = await startAtTail(log, tail, 'stderr');
      const frames = await readFrames(log, start, 'stderr');
      expect(frames.length).toBe(Math.min(tail, LINES / 3));
      expect(frames.every((frame) => 'stream' in frame && frame.stream === 'stderr')).toBe(true);
    }
  });

  it('is found by the id of a frame, whichever streams are read, and is the same from anywhere', async () => {
    const log = await manyLines();
    const all = await readFrames(log, startAtOldest(log));
    const tail = await readFrames(log, await startAtTail(log, 5_000, null));
    expect(tail).toEqual(all.slice(-5_000));
    for (const number of [1, 2, 9_999, 10_000, 10_001, 17_777, 20_000, LINES - 1, LINES]) {
      const seen = all[number - 1];
      const at = parseFrameId(seen !== undefined && 'id' in seen ? seen.id : '')?.at;
      if (at === undefined) throw new Error(`line ${number} has no id`);
      const start = await startAfterFrame(log, SHORT, at, null);
      expect(start.gap).toBe(false);
      expect(await readFrames(log, start)).toEqual(all.slice(number));
      const errors = await readFrames(
        log,
        await startAfterFrame(log, SHORT, at, 'stderr'),
        'stderr',
      );
      expect(errors.length).toBe(Math.floor(LINES / 3) - Math.floor(number / 3));
    }
  });

  it('that is gone gives a gap and what is later', async () => {
    const log = await manyLines();
    const all = await readFrames(log, startAtOldest(log));
    const first = parseFrameId(all[0] !== undefined && 'id' in all[0] ? all[0].id : '')?.at;
    const { ns } = first ?? { ns: 0n };
    const before = await startAfterFrame(log, SHORT, { ns: ns - 5n, seq: 0 }, null);
    expect(before.gap).toBe(true);
    expect((await readFrames(log, before)).length).toBe(LINES);
    const between = await startAfterFrame(log, SHORT, { ns: ns + 500n, seq: 0 }, null);
    expect(between.gap).toBe(true);
    expect(numberOf((await readFrames(log, between))[0])).toBe(2);
  });

  it('is found by time', async () => {
    for (let second = 0; second < 10; second += 1) {
      writer.writeRaw(
        Array.from({ length: 2_000 }, (_, n) => {
          const fraction = String(n).padStart(4, '0');
          return writer.entry(
            `${second} ${n}\n`,
            'stdout',
            `2026-02-01T00:00:0${second}.${fraction}Z`,
          );
        }).join(''),
      );
      if (second % 4 === 3) writer.rotate();
    }
    const log = await openLog();
    const fromMs = FEBRUARY_MS + 5_100;
    const lines = await read(log, await startAtTime(log, fromMs));
    expect(lines[0]).toBe('5 1000');
    expect(lines.length).toBe(1_000 + 4 * 2_000);
    expect((await read(log, await startAtTime(log, 0))).length).toBe(20_000);
    expect(await read(log, await startAtTime(log, fromMs + 60_000))).toEqual([]);
  });

  it('after one of two streams whose times cross is exact', async () => {
    const time = (us: number) => `2026-02-01T00:00:00.${String(us).padStart(6, '0')}Z`;
    for (const [us, stream] of [
      [10, 'stdout'],
      [12, 'stdout'],
      [11, 'stderr'],
      [14, 'stdout'],
      [13, 'stderr'],
    ] as const) {
      writer.writeRaw(writer.entry(`${us}\n`, stream, time(us)));
    }
    const log = await openLog();
    for (const [seen, left] of [
      [12, ['11', '14', '13']],
      [11, ['14', '13']],
      [13, []],
    ] as const) {
      const ns = BigInt(FEBRUARY_MS) * 1_000_000n + BigInt(seen) * 1000n;
      const start = await startAfterFrame(log, SHORT, { ns, seq: 0 }, null);
      expect(start.gap).toBe(false);
      expect(await read(log, start)).toEqual(left);
    }
  });
});

it('loses and doubles nothing without saying so, whatever is written, rotated and read when', async () => {
  const MAX_LINE = 40_000;
  for (let seed = 1; seed <= 40; seed += 1) {
    const random = createSeededRandom(seed);
    writer.remove();
    writer = createLogWriter(path);
    const log = await openLog();
    const readers = Array.from({ length: 3 }, () => ({
      start: startAtOldest(log),
      last: 0,
      explained: false,
    }));
    let written = 0;

    const writeLine = (): void => {
      written += 1;
      const text = `${written} ${'x'.repeat(random.int(random.int(20) === 0 ? MAX_LINE : 50))}\n`;
      for (let at = 0; at < text.length; at += 16_384) writer.write(text.slice(at, at + 16_384));
    };
    const readSome = async (reader: (typeof readers)[number], batches: number) => {
      for (let n = 0; n < batches; n += 1) {
        const { block, next, atEnd, gap } = await log.read(reader.start.cursor);
        reader.start.cursor = next;
        reader.explained ||= gap !== null;
        for (const frame of framesOf(block.text)) {
          const number = 'log' in frame ? Number(/^\d+(?= )/.exec(frame.log)?.[0] ?? 0) : 0;
          // The rest of a line whose beginning was rotated away.
          if (number === 0) continue;
          if (!reader.explained) expect(number, `seed ${seed}`).toBe(reader.last + 1);
          expect(number, `seed ${seed}`).toBeGreaterThan(reader.last);
          reader.last = number;
          reader.explained = false;
        }
        if (atEnd) return;
      }
    };

    for (let step = 0; step < 60; step += 1) {
      const what = random.int(10);
      if (what < 5) for (let n = random.int(20); n >= 0; n -= 1) writeLine();
      else if (what < 6) writer.rotate();
      else if (what < 7) {
        writer.shift();
        await Promise.all(readers.slice(0, random.int(3)).map((reader) => readSome(reader, 2)));
        writer.create();
      } else {
        const chosen = readers[random.int(2)];
        if (chosen !== undefined) await readSome(chosen, 1 + random.int(4));
      }
    }
    writeLine();
    for (const reader of readers) {
      await readSome(reader, Number.POSITIVE_INFINITY);
      expect(reader.last, `seed ${seed}`).toBe(written);
    }
    await log.close();
    open = [];
  }
});
