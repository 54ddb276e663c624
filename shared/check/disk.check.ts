/** The check of a disk's free space and inodes. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../runtime/clock.ts';
import type { RunCommand } from '../runtime/run-command.ts';
import { fail, type Outcome, ok, unread, warn } from './check.ts';
import { type Observed, observe, outputOf } from './observe.ts';

/** Shares from 0 to 1; `inodesUsed` is null on file systems without a fixed number of inodes. */
export type DiskUse = { path: string; used: number; freeBytes: number; inodesUsed: number | null };

/** Share of use from which on Docker evicts images and pulls may fail. */
const WARN_SHARE = 0.85;
/** Share of use from which on writes may fail. */
const FAIL_SHARE = 0.95;
const BYTES_PER_GIB = 2 ** 30;
const COMMAND = { timeoutMs: 4_000, maxOutputBytes: 10_000 };
const DEADLINE_MS = 5_000;
const BYTES_PER_KIB = 1_024;

/** Runs `df` as a child process: a call on a dead mount never returns and would block this process. */
export function readDiskUse(options: {
  clock: Clock;
  runCommand: RunCommand;
  path: string;
}): Promise<Observed<DiskUse>> {
  const { path } = options;

  async function df(...flags: string[]): Promise<number[]> {
    return columnsIn(outputOf('df', await options.runCommand('df', [...flags, path], COMMAND)));
  }

  return observe(options.clock, DEADLINE_MS, async (): Promise<DiskUse> => {
    const [[, used = 0, free = 0], [inodes = 0, inodesUsed = 0]] = await Promise.all([
      df('-P', '-k'),
      df('-P', '-i'),
    ]);
    return {
      path,
      used: used + free === 0 ? 0 : used / (used + free),
      freeBytes: free * BYTES_PER_KIB,
      inodesUsed: inodes === 0 ? null : inodesUsed / inodes,
    };
  });
}

/**
 * Returns size, used and free of the last line. Parses the line from the right, because device names may contain
 * spaces.
 */
function columnsIn(text: string): number[] {
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  return (/(\d+|-)\s+(\d+|-)\s+(-?\d+|-)\s+(?:\d+%|-)\s+\//.exec(line) ?? [])
    .slice(1)
    .map((figure) => Number(figure) || 0);
}

/** Returns the nearest existing folder: a home that is not created yet will be on its parent's disk. */
export function nearestFolder(path: string): string {
  return existsSync(path) || path === '/' ? path : nearestFolder(dirname(path));
}

export const DISK_REQUIRED = `at most ${percent(WARN_SHARE)} of the space and of the inodes used`;

/** `minFreeGib`: free space that must remain; 0 for no such limit. */
export function judgeDisk(
  observed: Observed<DiskUse>,
  { minFreeGib, remedy }: { minFreeGib: number; remedy: string },
): Outcome {
  if ('problem' in observed)
    return unread(observed, `its disk cannot be read: ${observed.problem}`);
  const { path, used, freeBytes, inodesUsed } = observed.value;
  const inodes = inodesUsed === null ? '' : `, ${percent(inodesUsed)} of its inodes`;
  const freeGib = freeBytes / BYTES_PER_GIB;
  const minimum = minFreeGib === 0 ? '' : ` of the required ${minFreeGib} GiB`;
  const free = `${freeGib.toFixed(1)} GiB free${minimum}`;
  const measured = `${path}: ${percent(used)} used${inodes}, ${free}`;
  const worst = Math.max(used, inodesUsed ?? 0);
  if (worst >= FAIL_SHARE || freeGib < minFreeGib) return fail(measured, remedy);
  return worst >= WARN_SHARE ? warn(measured, remedy) : ok(measured);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
