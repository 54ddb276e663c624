import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import {
  CONTAINER,
  createLogFolder,
  framesOf,
  type LogFolder,
  read,
  readFrames,
} from '../../test/fakes/agents/log-folder.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createSeededRandom } from '../../test/fakes/seeded-random.ts';
import { openLogFile, POLL_MS } from './log-file.ts';
import { startAtOldest } from './log-seek.ts';

let logs: LogFolder;
beforeEach(() => {
  logs = createLogFolder();
});
afterEach(() => logs.remove());

describe('the file', () => {
  it('may be truncated, as by an engine that retains one file', async () => {
    logs.write('one', 'two', 'three');
    const log = await logs.openLog();
    const start = startAtOldest(log);
    await read(log, start);
    logs.writer().truncate();
    expect(await read(log, start)).toEqual(['<gap>']);
    logs.write('four');
    expect(await read(log, start)).toEqual(['four']);
    logs.writer().truncate();
    logs.write(
      'a line longer than the reader’s position, so that only the byte before that position shows the truncation',
    );
    expect((await read(log, start))[0]).toBe('<gap>');
  });

  it('may be deleted: readers still reach its end', async () => {
    logs.write('one');
    const log = await logs.openLog();
    const start = startAtOldest(log);
    await read(log, start);
    logs.write('the end');
    logs.writer().remove();
    expect(await read(log, start)).toEqual(['the end']);
    expect(await read(log, start)).toEqual([]);
  });

  it('must exist when the log is opened', async () => {
    logs.writer().remove();
    await expect(openLogFile(logs.path, CONTAINER, systemClock)).rejects.toThrow('does not exist');
    await expect(openLogFile(`${logs.path}/x`, CONTAINER, systemClock)).rejects.toThrow();
  });

  it('may end in half an entry, which is read once it is complete, and skipped if it is never completed', async () => {
    const log = await logs.openLog();
    const start = startAtOldest(log);
    const whole = logs.writer().entry('whole\n', 'stdout');
    logs.writer().writeRaw(whole.slice(0, 20));
    expect(await read(log, start)).toEqual([]);
    logs.writer().writeRaw(whole.slice(20));
    expect(await read(log, start)).toEqual(['whole']);
    logs.writer().writeRaw(whole.slice(0, 20));
    logs.writer().rotate();
    logs.write('next');
    expect(await read(log, start)).toEqual(['next']);
  });
});

it('wakes readers when the engine writes', async () => {
  const log = await logs.openLog();
  const start = startAtOldest(log);
  const waits: number[] = [];
  for (let n = 0; n < 20; n += 1) {
    await read(log, start);
    const changed = log.changed();
    const beganMs = systemClock.monotonicMs();
    logs.write(`line ${n}`);
    if (n % 5 === 4) logs.writer().rotate();
    await changed;
    waits.push(systemClock.monotonicMs() - beganMs);
    expect((await read(log, start)).length).toBe(1);
  }
  // Most wake-ups came from inotify: the poll alone would take its whole interval each time.
  expect(waits.toSorted((a, b) => a - b)[10]).toBeLessThan(POLL_MS / 2);
});

it('reports changes at most once per pause, however often the engine writes', async () => {
  const clock = createManualClock(0);
  const log = await openLogFile(logs.path, CONTAINER, clock);
  try {
    const first = log.changed();
    logs.write('one');
    await first;
    let isReported = false;
    const second = log.changed().then(() => {
      isReported = true;
    });
    logs.write('two');
    await systemClock.sleep(20);
    expect(isReported).toBe(false);
    await clock.advance(10);
    await second;
  } finally {
    await log.close();
  }
});

it('lets followers read 8 MiB at once and the rest batch by batch, and other readers everything', async () => {
  const MIB = 1024 * 1024;
  const entry = logs.writer().entry(`${'x'.repeat(1_000)}\n`, 'stdout');
  logs.writer().writeRaw(entry.repeat((12 * MIB) / entry.length));
  const clock = createManualClock(0);
  const log = await openLogFile(logs.path, CONTAINER, clock);
  const leave = new AbortController();
  try {
    let { cursor } = startAtOldest(log);
    const reading = (async () => {
      for (;;) cursor = (await log.follow(cursor, leave.signal)).next;
    })().catch(() => undefined);
    const readMib = () => Math.round(cursor.offset / MIB);
    await eventually('the burst', () => readMib() === 8);
    await systemClock.sleep(20);
    expect(readMib()).toBe(8);
    const { offset } = cursor;
    await clock.advance(50);
    await eventually('the next batch', () => cursor.offset > offset);
    expect(readMib()).toBe(8);
    expect(await read(log, startAtOldest(log))).toHaveLength(Math.floor((12 * MIB) / entry.length));
    leave.abort();
    await reading;
  } finally {
    leave.abort();
    await log.close();
  }
});

it('shares one read between readers at the same position', async () => {
  logs.write('one');
  const log = await logs.openLog();
  const { cursor } = startAtOldest(log);
  const [first, second] = await Promise.all([log.read(cursor), log.read({ ...cursor })]);
  expect(second).toBe(first);
  expect(await log.read({ ...cursor })).toBe(first);
  const [end, again] = await Promise.all([log.read(first.next), log.read(first.next)]);
  expect(again).toBe(end);
  logs.write('two');
  expect((await log.read(first.next)).block.ends.length).toBe(1);
});

describe('rotation', () => {
  it('loses no line written just before it', async () => {
    logs.write('one');
    const log = await logs.openLog();
    const start = startAtOldest(log);
    expect(await read(log, start)).toEqual(['one']);
    logs.write('two');
    logs.writer().rotate();
    logs.write('three');
    expect(await read(log, start)).toEqual(['two', 'three']);
  });

  it('may be observed between its two steps', async () => {
    logs.write('one');
    const log = await logs.openLog();
    const start = startAtOldest(log);
    expect(await read(log, start)).toEqual(['one']);
    logs.write('two');
    logs.writer().shift();
    expect(await read(log, start)).toEqual(['two']);
    logs.writer().create();
    logs.write('three');
    expect(await read(log, start)).toEqual(['three']);
  });

  it('may be in progress when the log is opened', async () => {
    logs.write('one');
    logs.writer().rotate();
    logs.write('two');
    logs.writer().shift();
    const opening = logs.openLog();
    await systemClock.sleep(1);
    logs.writer().create();
    logs.write('three');
    const log = await opening;
    expect(await read(log, startAtOldest(log))).toEqual(['one', 'two', 'three']);
  });

  it('twice between two reads loses no line, not even one that spans two files', async () => {
    const part = 'x'.repeat(16 * 1024);
    logs.write('one');
    const log = await logs.openLog();
    const start = startAtOldest(log);
    expect(await read(log, start)).toEqual(['one']);
    logs.writer().write(part);
    logs.writer().rotate();
    logs.write('end', 'two');
    logs.writer().rotate();
    logs.write('three');
    expect(await read(log, start)).toEqual([`${part}end`, 'two', 'three']);
  });

  it('loses no line for a reader in an older file', async () => {
    logs.write('one');
    logs.writer().rotate();
    logs.write('two');
    logs.writer().rotate();
    logs.write('three');
    const log = await logs.openLog();
    const start = startAtOldest(log);
    const reader = startAtOldest(log);
    expect(await read(log, reader)).toEqual(['one', 'two', 'three']);
    logs.writer().rotate();
    logs.write('four');
    expect(await read(log, reader)).toEqual(['four']);
    expect(await read(log, start)).toEqual(['one', 'two', 'three', 'four']);
  });

  it('beyond the retained files yields a gap with an estimate of the lost lines', async () => {
    for (let n = 0; n < 1000; n += 1) logs.write(`line ${n}`);
    const log = await logs.openLog();
    const start = startAtOldest(log);
    await read(log, start);
    // Synchronous: the reader cannot observe any intermediate state.
    for (let rotation = 0; rotation < 5; rotation += 1) {
      logs.writer().rotate();
      for (let n = 0; n < 100; n += 1) logs.write(`later ${rotation} ${n}`);
    }
    const frames = await readFrames(log, start);
    expect(frames[0]).toMatchObject({ meta: 'gap' });
    const dropped = frames[0] !== undefined && 'dropped' in frames[0] ? frames[0].dropped : 0;
    expect(dropped).toBeGreaterThan(150);
    expect(dropped).toBeLessThan(250);
    expect(frames[1]).toMatchObject({ log: 'later 2 0\n' });
    expect(frames.length).toBe(301);
  });

  it('yields a gap only for the reader that fell behind', async () => {
    logs.write('one');
    const log = await logs.openLog();
    const slow = startAtOldest(log);
    const quick = startAtOldest(log);
    for (const line of ['two', 'three', 'four', 'five', 'six']) {
      expect((await read(log, quick)).length).toBe(1);
      logs.writer().rotate();
      logs.write(line);
    }
    expect(await read(log, quick)).toEqual(['six']);
    // The first batch is still cached.
    expect(await read(log, slow)).toEqual(['one', '<gap>', 'three', 'four', 'five', 'six']);
  });
});

it('neither loses nor repeats a line without reporting a gap, in any order of writes, rotations and reads', async () => {
  const MAX_LINE = 40_000;
  for (let seed = 1; seed <= 40; seed += 1) {
    const random = createSeededRandom(seed);
    await logs.renew();
    const log = await logs.openLog();
    const readers = Array.from({ length: 3 }, () => ({
      start: startAtOldest(log),
      last: 0,
      explained: false,
    }));
    let written = 0;

    const writeLine = (): void => {
      written += 1;
      const text = `${written} ${'x'.repeat(random.int(random.int(20) === 0 ? MAX_LINE : 50))}\n`;
      for (let at = 0; at < text.length; at += 16_384)
        logs.writer().write(text.slice(at, at + 16_384));
    };
    const readSome = async (reader: (typeof readers)[number], batches: number) => {
      for (let n = 0; n < batches; n += 1) {
        const { block, next, atEnd, gap } = await log.read(reader.start.cursor);
        reader.start.cursor = next;
        reader.explained ||= gap !== null;
        for (const frame of framesOf(block.text)) {
          const number = 'log' in frame ? Number(/^\d+(?= )/.exec(frame.log)?.[0] ?? 0) : 0;
          // Skips the end of a line whose beginning was rotated away.
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
      else if (what < 6) logs.writer().rotate();
      else if (what < 7) {
        logs.writer().shift();
        await Promise.all(readers.slice(0, random.int(3)).map((reader) => readSome(reader, 2)));
        logs.writer().create();
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
  }
});
