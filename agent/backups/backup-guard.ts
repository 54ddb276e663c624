/**
 * Stops backups that a pod would make endless, whose share of the node other pods need: huge sparse files, whose gaps
 * restic reads, and files that are replaced with named pipes while restic opens them.
 */
import { readdir, readFile, statfs } from 'node:fs/promises';
import type { Clock } from '#shared/runtime/clock.ts';
import { OperationFailure } from './operation.state.ts';
import type { BackupStatus } from './restic-output.ts';

/** Limit of the files' sizes, in sizes of the disk. Files with several names count once for each. */
const MOST_DISKS = 4;
/** Interval of the looks at restic's threads, and the number of equal looks at a thread that does not continue. */
const LOOK_MS = 2_000;
const MOST_LOOKS = 5;
/** Number of the system call openat(2). */
const OPENAT: Partial<Record<NodeJS.Architecture, string>> = { x64: '257', arm64: '56' };

export type BackupGuard = {
  /** Aborts with the reason, an OperationFailure. */
  signal: AbortSignal;
  /** Returns false beyond the limit of sizes. */
  allows(status: BackupStatus): boolean;
  /** Watches the threads of the process until it has ended. */
  watch(pid: number): void;
};

/** `folder` is on the disk of the files. */
export async function createBackupGuard(folder: string, clock: Clock): Promise<BackupGuard> {
  const { blocks, bsize } = await statfs(folder);
  const limitBytes = blocks * bsize * MOST_DISKS;
  const over = new AbortController();

  async function watch(pid: number): Promise<void> {
    let looks: Looks = new Map();
    while (!over.signal.aborted) {
      await clock.sleep(LOOK_MS);
      const opening = await openingThreads(pid);
      if (opening === null) return;
      looks = nextLooks(looks, opening);
      if ([...looks.values()].some(({ count }) => count >= MOST_LOOKS)) {
        const message = 'A file was replaced with a named pipe while it was opened. Back up again';
        over.abort(new OperationFailure('PathRefused', message));
      }
    }
  }

  return {
    signal: over.signal,
    allows({ total_bytes: bytes }) {
      if (bytes <= limitBytes) return true;
      const size = `The files have ${bytes} bytes, the gaps of sparse files included`;
      const message = `${size}; the limit is ${limitBytes}, ${MOST_DISKS} times the node's disk`;
      over.abort(new OperationFailure('NoSpace', message));
      return false;
    },
    watch: (pid) => void watch(pid),
  };
}

/** By thread: its call with arguments and stack, and the number of successive looks that found the same. */
type Looks = ReadonlyMap<string, { call: string; count: number }>;

function nextLooks(before: Looks, opening: ReadonlyMap<string, string>): Looks {
  const looks = [...opening].map(([thread, call]) => {
    const known = before.get(thread);
    return [thread, { call, count: known?.call === call ? known.count + 1 : 1 }] as const;
  });
  return new Map(looks);
}

/** Returns the threads of the process that are opening a file; null once the process has ended. */
async function openingThreads(pid: number): Promise<Map<string, string> | null> {
  const folder = `/proc/${pid}/task`;
  const threads = await readdir(folder).catch(() => null);
  if (threads === null) return null;
  const found = new Map<string, string>();
  for (const thread of threads) {
    // Empty for a thread that has ended, and without permission.
    const call = await readFile(`${folder}/${thread}/syscall`, 'utf8').catch(() => '');
    if (call.startsWith(`${OPENAT[process.arch]} `)) found.set(thread, call);
  }
  return found;
}
