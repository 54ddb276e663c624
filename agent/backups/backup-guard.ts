/**
 * Stops backups that a pod could keep running without end. There are two causes: huge sparse files, because restic also
 * reads their gaps, and files that the pod replaces with named pipes while restic opens them.
 */
import { readdir, readFile, statfs } from 'node:fs/promises';
import type { Clock } from '#shared/runtime/clock.ts';
import { OperationFailure } from './operation.state.ts';
import type { BackupStatus } from './restic-output.ts';

/**
 * Limit of the total size of the files, as a multiple of the disk's size. A file with several names counts once per
 * name.
 */
const MOST_DISKS = 4;
/**
 * Interval at which restic's threads are checked, and the number of equal results after which a thread counts as
 * blocked.
 */
const LOOK_MS = 2_000;
const MOST_LOOKS = 5;
/** Number of the system call openat(2). */
const OPENAT: Partial<Record<NodeJS.Architecture, string>> = { x64: '257', arm64: '56' };

export type BackupGuard = {
  /** Aborts when the backup must stop. The reason is an OperationFailure. */
  signal: AbortSignal;
  /** Returns false if the files exceed the size limit. */
  allows(status: BackupStatus): boolean;
  /** Watches the threads of the process until it has ended. */
  watch(pid: number): void;
};

/** `folder` is a folder on the disk that contains the files. */
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
      const size = `The files have ${bytes} bytes, including the gaps of sparse files`;
      const message = `${size}; the limit is ${limitBytes}, ${MOST_DISKS} times the node's disk`;
      over.abort(new OperationFailure('NoSpace', message));
      return false;
    },
    watch: (pid) => void watch(pid),
  };
}

/** Per thread: its system call with arguments and stack, and the number of consecutive checks with the same result. */
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
    // Empty if the thread has ended or may not be read.
    const call = await readFile(`${folder}/${thread}/syscall`, 'utf8').catch(() => '');
    if (call.startsWith(`${OPENAT[process.arch]} `)) found.set(thread, call);
  }
  return found;
}
