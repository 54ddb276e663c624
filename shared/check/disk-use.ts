/** How full the disk is that a path lies on, and what to make of that (agent reference 11). */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../runtime/clock.ts';
import type { RunCommand } from '../runtime/run-command.ts';
import { type Finding, fail, ok, unknown, warn } from './finding.ts';
import { type Told, tell } from './told.ts';

/** Shares from 0 to 1; null inodes where the file system has no fixed number of them. */
export type DiskUse = { path: string; used: number; freeBytes: number; inodesUsed: number | null };

/** Images are thrown away from here on, and pulls are at risk. */
const FULL_SHARE = 0.85;
/** Writing is at risk. */
const DANGEROUS_SHARE = 0.95;
const BYTES_PER_GIB = 2 ** 30;
const COMMAND = { timeoutMs: 4_000, maxOutputBytes: 10_000 };
const DEADLINE_MS = 5_000;
const BYTES_PER_KIB = 1_024;

/** `df` as a child: a dead mount never answers, and holds for ever whoever asks. */
export function readDiskUse(options: {
  clock: Clock;
  runCommand: RunCommand;
  path: string;
}): Promise<Told<DiskUse>> {
  const { path } = options;

  async function df(...flags: string[]): Promise<number[]> {
    const ran = await options.runCommand('df', [...flags, path], COMMAND);
    const { exitCode, stdout, stderr, ended } = ran;
    if (exitCode !== 0) throw new Error(stderr.trim() || ended || `df: exit status ${exitCode}`);
    return columnsIn(stdout);
  }

  return tell(options.clock, DEADLINE_MS, async (): Promise<DiskUse> => {
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

/** Size, used and free of the last line; device names may hold blanks, so from the right. */
function columnsIn(text: string): number[] {
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  return (/(\d+|-)\s+(\d+|-)\s+(-?\d+|-)\s+(?:\d+%|-)\s+\//.exec(line) ?? [])
    .slice(1)
    .map((figure) => Number(figure) || 0);
}

/** A home that is not made yet is on the disk of its nearest parent. */
export function nearestFolder(path: string): string {
  return existsSync(path) || path === '/' ? path : nearestFolder(dirname(path));
}

/** One finding by the name `id`. */
export function diskFinding(id: string, told: Told<DiskUse>, remedy: string): Finding {
  if ('problem' in told) return unknown(id, `its disk cannot be asked: ${told.problem}`);
  const { path, used, freeBytes, inodesUsed } = told.value;
  const inodes = inodesUsed === null ? '' : `, ${percent(inodesUsed)} of its inodes`;
  const free = `${(freeBytes / BYTES_PER_GIB).toFixed(1)} GiB free`;
  const what = `${path}: ${percent(used)} used${inodes}, ${free}`;
  const worst = Math.max(used, inodesUsed ?? 0);
  if (worst >= DANGEROUS_SHARE) return fail(id, what, remedy);
  return worst >= FULL_SHARE ? warn(id, what, remedy) : ok(id, what);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
