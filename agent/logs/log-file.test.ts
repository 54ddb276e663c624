import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { CONTAINER, createLogFolder, type LogFolder, read } from '../../test/fakes/log-folder.ts';
import { openLogFile, POLL_MS } from './log-file.ts';
import { startAtOldest } from './log-seek.ts';

let logs: LogFolder;
beforeEach(() => {
  logs = createLogFolder();
});
afterEach(() => logs.remove());

describe('the file', () => {
  it('may be emptied where the engine keeps one only', async () => {
    logs.write('one', 'two', 'three');
    const log = await logs.openLog();
    const start = startAtOldest(log);
    await read(log, start);
    logs.writer().truncate();
    expect(await read(log, start)).toEqual(['<gap>']);
    logs.write('four');
    expect(await read(log, start)).toEqual(['four']);
    logs.writer().truncate();
    logs.write('a line that goes beyond where the reader was, so that only its start can tell');
    expect((await read(log, start))[0]).toBe('<gap>');
  });

  it('may be removed: what was written is still read', async () => {
    logs.write('one');
    const log = await logs.openLog();
    const start = startAtOldest(log);
    await read(log, start);
    logs.write('last words');
    logs.writer().remove();
    expect(await read(log, start)).toEqual(['last words']);
    expect(await read(log, start)).toEqual([]);
  });

  it('has to be there at first', async () => {
    logs.writer().remove();
    await expect(openLogFile(logs.path, CONTAINER, systemClock)).rejects.toThrow('does not exist');
    await expect(openLogFile(`${logs.path}/x`, CONTAINER, systemClock)).rejects.toThrow();
  });

  it('may end in half an entry, which is read when it is whole, and left out when it never is', async () => {
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

it('wakes its readers when the engine writes', async () => {
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
  // Most wakes came from the engine's writing: the poll alone takes its whole interval each time.
  expect(waits.toSorted((a, b) => a - b)[10]).toBeLessThan(POLL_MS / 2);
});

it('reads once for all who are at the same place', async () => {
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
