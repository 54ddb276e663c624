import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LogFrame } from '#shared/api/agent/pod.ts';
import {
  createLogFolder,
  type LogFolder,
  read,
  readFrames,
} from '../../test/fakes/agents/log-folder.ts';
import type { LogFile } from './log-file.ts';
import { parseFrameId } from './log-frames.ts';
import { startAfterFrame, startAtOldest, startAtTail, startAtTime } from './log-seek.ts';

const SHORT = 'abcdef012345';
/** 2026-02-01T00:00:00Z */
const FEBRUARY_MS = 1_769_904_000_000;

let logs: LogFolder;
beforeEach(() => {
  logs = createLogFolder();
});
afterEach(() => logs.remove());

describe('a position in the log', () => {
  const LINES = 30_000;

  /** Writes three files of several search steps each; every third line is on stderr. */
  async function manyLines(): Promise<LogFile> {
    const entries: string[] = [];
    const flush = () => logs.writer().writeRaw(entries.splice(0).join(''));
    for (let n = 1; n <= LINES; n += 1) {
      const stream = n % 3 === 0 ? 'stderr' : 'stdout';
      entries.push(logs.writer().entry(`line ${n} ${'.'.repeat(n % 100)}\n`, stream));
      if (n % 10_000 === 0) flush();
      if (n === 10_000 || n === 20_000) logs.writer().rotate();
    }
    return logs.openLog();
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

  it('is found by frame id for every stream selection; frame ids do not depend on where reading started', async () => {
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

  it('yields a gap and the lines after it if its frame was deleted', async () => {
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
      logs.writer().writeRaw(
        Array.from({ length: 2_000 }, (_, n) => {
          const fraction = String(n).padStart(4, '0');
          return logs
            .writer()
            .entry(`${second} ${n}\n`, 'stdout', `2026-02-01T00:00:0${second}.${fraction}Z`);
        }).join(''),
      );
      if (second % 4 === 3) logs.writer().rotate();
    }
    const log = await logs.openLog();
    const fromMs = FEBRUARY_MS + 5_100;
    const lines = await read(log, await startAtTime(log, fromMs));
    expect(lines[0]).toBe('5 1000');
    expect(lines.length).toBe(1_000 + 4 * 2_000);
    expect((await read(log, await startAtTime(log, 0))).length).toBe(20_000);
    expect(await read(log, await startAtTime(log, fromMs + 60_000))).toEqual([]);
  });

  it('is exact when the timestamps of the two streams are out of order', async () => {
    const time = (us: number) => `2026-02-01T00:00:00.${String(us).padStart(6, '0')}Z`;
    for (const [us, stream] of [
      [10, 'stdout'],
      [12, 'stdout'],
      [11, 'stderr'],
      [14, 'stdout'],
      [13, 'stderr'],
    ] as const) {
      logs.writer().writeRaw(logs.writer().entry(`${us}\n`, stream, time(us)));
    }
    const log = await logs.openLog();
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
