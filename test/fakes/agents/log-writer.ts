/** Writes a container's log as the engine does, rotation step by step, so that a reader can be met between any two. */
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

/** Entries get times of one microsecond each, from the start of the year 2026 on. */
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
    /** Without its newline a text is part of a line. */
    write(log: string, stream: 'stdout' | 'stderr' = 'stdout'): void {
      appendFileSync(path, entry(log, stream));
    },
    /** What the engine, or what it left when the power went. */
    writeRaw: (text: string): void => appendFileSync(path, text),
    entry,
    /** The old files move up, and the present one with them: for an instant there is none. */
    shift(): void {
      for (let number = maxFiles - 1; number > 1; number -= 1) {
        const from = `${path}.${number - 1}`;
        if (existsSync(from)) renameSync(from, `${path}.${number}`);
      }
      if (maxFiles > 1) renameSync(path, `${path}.1`);
    },
    /** The new file, or the old one emptied where only one is kept. */
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
