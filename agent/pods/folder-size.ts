/** Measures folders with `du` in a child process: a walk of millions of files must not block the agent. */
import { access, constants } from 'node:fs/promises';
import type { RunCommand } from '#shared/runtime/run-command.ts';

/**
 * Returns the bytes on disk below the folders, without leaving their file systems. Hard links count once. Null if a
 * folder is not readable or the walk takes longer than a minute.
 */
export type FolderBytes = (folders: readonly string[]) => Promise<number | null>;
/** Returns the number of entries, including the folders themselves; null as for FolderBytes. */
export type FolderEntries = FolderBytes;

/** Limits of a walk, which suffice for about ten million files on an idle disk. */
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
    // Files that vanish during the walk cause warnings and exit status 1; the total is still printed.
    const total = /^(\d+)\t/.exec(walk.stdout.trimEnd().split('\n').at(-1) ?? '')?.[1];
    return walk.ended === null && total !== undefined ? Number(total) : null;
  } catch {
    return null;
  }
}
