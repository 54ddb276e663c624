/** How full the disks are that images, pods and the agent's store lie on. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import type { RunCommand } from '#shared/run-command.ts';
import { type Told, tell } from './told.ts';

/** Shares from 0 to 1; null inodes where the file system has no fixed number of them. */
export type DiskUse = { path: string; used: number; freeBytes: number; inodesUsed: number | null };
export type DiskFacts = { engine: Told<DiskUse>; home: Told<DiskUse> };

const COMMAND = { timeoutMs: 4_000, maxOutputBytes: 10_000 };
const DEADLINE_MS = 5_000;
const BYTES_PER_KIB = 1_024;

/** `df` as a child: a dead mount never answers, and holds for ever whoever asks. */
export async function readDiskFacts(options: {
  clock: Clock;
  runCommand: RunCommand;
  /** Null: not known. */
  engineRoot: string | null;
  home: string;
}): Promise<DiskFacts> {
  const { clock, engineRoot } = options;

  async function df(path: string, ...flags: string[]): Promise<number[]> {
    const { exitCode, stdout, stderr, ended } = await options.runCommand(
      'df',
      [...flags, path],
      COMMAND,
    );
    if (exitCode !== 0) throw new Error(stderr.trim() || ended || `df: exit status ${exitCode}`);
    return columnsIn(stdout);
  }

  const use = (path: string) =>
    tell(clock, DEADLINE_MS, async (): Promise<DiskUse> => {
      const [[, used = 0, free = 0], [inodes = 0, inodesUsed = 0]] = await Promise.all([
        df(path, '-P', '-k'),
        df(path, '-P', '-i'),
      ]);
      const share = used + free === 0 ? 0 : used / (used + free);
      const freeBytes = free * BYTES_PER_KIB;
      return {
        path,
        used: share,
        freeBytes,
        inodesUsed: inodes === 0 ? null : inodesUsed / inodes,
      };
    });

  const [engine, home] = await Promise.all([
    engineRoot === null ? { problem: 'the engine did not name its folder' } : use(engineRoot),
    use(nearest(options.home)),
  ]);
  return { engine, home };
}

/** Size, used and free of the last line; device names may hold blanks, so from the right. */
function columnsIn(text: string): number[] {
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  return (/(\d+|-)\s+(\d+|-)\s+(-?\d+|-)\s+(?:\d+%|-)\s+\//.exec(line) ?? [])
    .slice(1)
    .map((figure) => Number(figure) || 0);
}

/** A home that is not made yet is on the disk of its nearest parent. */
function nearest(path: string): string {
  return existsSync(path) || path === '/' ? path : nearest(dirname(path));
}
