/** How much lies in folders that others write to, told by a child: a walk of millions of files must not hold the agent. */
import { access, constants } from 'node:fs/promises';
import type { RunCommand } from '#shared/runtime/run-command.ts';

/**
 * Bytes on disk below the folders, each file once, nothing followed out of them. Null when that cannot be
 * told: not readable for this user, or not within a minute.
 */
export type FolderBytes = (folders: readonly string[]) => Promise<number | null>;
/** Entries there, the folders themselves among them; the same otherwise. */
export type FolderEntries = FolderBytes;

/** Some ten million files, when nothing else wants the disk. */
const WALK = { timeoutMs: 60_000, maxOutputBytes: 1024 * 1024 };
const DU = ['nice', '-n', '10', 'du', '--summarize', '--total', '--one-file-system'] as const;

export function createFolderBytes(runCommand: RunCommand): FolderBytes {
  return (folders) => totalOf(runCommand, '--block-size=1', folders);
}

export function createFolderEntries(runCommand: RunCommand): FolderEntries {
  return (folders) => totalOf(runCommand, '--inodes', folders);
}

async function totalOf(
  runCommand: RunCommand,
  unit: string,
  folders: readonly string[],
): Promise<number | null> {
  if (folders.length === 0) return 0;
  try {
    for (const folder of folders) await access(folder, constants.R_OK | constants.X_OK);
    const [nice, ...args] = DU;
    const walk = await runCommand(nice, [...args, unit, '--', ...folders], WALK);
    // Files that went away during the walk are complaints, and an exit status of 1, beside the total.
    const total = /^(\d+)\t/.exec(walk.stdout.trimEnd().split('\n').at(-1) ?? '')?.[1];
    return walk.ended === null && total !== undefined ? Number(total) : null;
  } catch {
    return null;
  }
}
