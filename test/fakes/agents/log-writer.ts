/** Writes a container's log as the engine does. Rotation happens in steps, so that a test can read between any two. */
import {
  appendFileSync,
  existsSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { naiveUtc } from '#shared/runtime/clock.ts';

export type LogWriter = ReturnType<typeof createLogWriter>;

/** Entries are one microsecond apart, starting at 2026-01-01. */
export function createLogWriter(path: string, maxFiles = 3) {
  const START_S = 1_767_225_600;
  let serial = 0;

  function entry(log: string, stream: 'stdout' | 'stderr', time = timeOf(serial)): string {
    serial += 1;
    return `${JSON.stringify({ log, stream, time })}\n`;
  }

  function timeOf(number: number): string {
    const seconds = naiveUtc((START_S + Math.floor(number / 1e6)) * 1000);
    return `${seconds.slice(0, 19)}.${String(number % 1e6).padStart(6, '0')}001Z`;
  }

  writeFileSync(path, '');
  const steps = {
    /** Appends a log entry. A text without a newline at its end is a part of a line. */
    write(log: string, stream: 'stdout' | 'stderr' = 'stdout'): void {
      appendFileSync(path, entry(log, stream));
    },
    /** Writes bytes as they are, such as a line that a power loss truncated. */
    writeRaw: (text: string): void => appendFileSync(path, text),
    entry,
    /** Renames the rotated files and the current file. There is no current file until `create` is called. */
    shift(): void {
      for (let number = maxFiles - 1; number > 1; number -= 1) {
        const from = `${path}.${number - 1}`;
        if (existsSync(from)) renameSync(from, `${path}.${number}`);
      }
      if (maxFiles > 1) renameSync(path, `${path}.1`);
    },
    /** Creates the new file, or truncates the current file if only one file is retained. */
    create: (): void => writeFileSync(path, ''),
    rotate(): void {
      steps.shift();
      steps.create();
    },
    truncate: (): void => truncateSync(path, 0),
    remove(): void {
      for (const name of [
        path,
        ...Array.from({ length: maxFiles }, (_, n) => `${path}.${n + 1}`),
      ]) {
        rmSync(name, { force: true });
      }
    },
  };
  return steps;
}
