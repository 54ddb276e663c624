/** A container's log files in a temporary folder, written like the engine's and read by the agent's code. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogFrame } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { type LogFile, openLogFile } from '../../../agent/logs/log-file.ts';
import { type Start, selectLines } from '../../../agent/logs/log-seek.ts';
import { createLogWriter } from './log-writer.ts';

export const CONTAINER = 'abcdef0123456789';

export type LogFolder = ReturnType<typeof createLogFolder>;

/** Creates the folder. The caller must call `remove` afterwards. */
export function createLogFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-logs-'));
  const path = join(folder, 'x-json.log');
  let writer = createLogWriter(path);
  let open: LogFile[] = [];

  async function closeAll(): Promise<void> {
    await Promise.all(open.map((log) => log.close()));
    open = [];
  }

  return {
    path,
    writer: () => writer,
    write(...lines: string[]): void {
      for (const line of lines) writer.write(`${line}\n`);
    },
    async openLog(): Promise<LogFile> {
      const log = await openLogFile(path, CONTAINER, systemClock);
      open.push(log);
      return log;
    },
    /** Replaces the log files by the empty log file of a new container. */
    async renew(): Promise<void> {
      await closeAll();
      writer.remove();
      writer = createLogWriter(path);
    },
    async remove(): Promise<void> {
      await closeAll();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Parses the frames of an event stream. */
export function framesOf(text: string): LogFrame[] {
  const frames = text.split('\n\n').slice(0, -1);
  return frames.map((frame) => LogFrame.parse(JSON.parse(frame.slice('data: '.length))));
}

/** Reads from `start` to the end: lines without newlines, and `<gap>` for each gap. */
export async function read(
  log: LogFile,
  start: Start,
  stream: 'stdout' | 'stderr' | null = null,
): Promise<string[]> {
  return (await readFrames(log, start, stream)).map((frame) =>
    'log' in frame ? frame.log.trimEnd() : '<gap>',
  );
}

export async function readFrames(
  log: LogFile,
  start: Start,
  stream: 'stdout' | 'stderr' | null = null,
): Promise<LogFrame[]> {
  const frames: LogFrame[] = [];
  for (;;) {
    const { block, next, atEnd, gap } = await log.read(start.cursor);
    start.cursor = next;
    if (gap !== null) frames.push({ meta: 'gap', dropped: gap.dropped ?? 0 });
    frames.push(...framesOf(selectLines(block, start, stream)));
    if (atEnd) return frames;
  }
}
