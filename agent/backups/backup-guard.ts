/**
 * Stops backups that a pod could keep running without end. There are three causes: large sparse files and
 * files with many hard links, because restic reads every hole, and reads a file once for each hard link;
 * changes that never end; and files that the pod replaces with named pipes while restic opens them.
 */
import { readdir, readFile, statfs } from 'node:fs/promises';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import { type Jail, jailCommand } from './jail.ts';
import { OperationFailure } from './operation.state.ts';
import type { BackupStatus } from './restic-output.ts';

const GIB = 1024 ** 3;

/**
 * Limit of the total size of the files, holes included: 64 GiB plus four times their bytes on disk. A file
 * counts once for each of its hard links.
 */
const FREE_BYTES = 64 * GIB;
const MOST_TIMES = 4;
/** Limit of the duration: one hour plus one second for each MiB on disk. */
const FREE_MS = 3_600_000;
const LEAST_BYTES_PER_MS = 1024 ** 2 / 1_000;
/**
 * Interval at which sizes and restic's threads are checked, and the number of equal results after which a thread counts
 * as blocked.
 */
const LOOK_MS = 2_000;
const MOST_LOOKS = 5;
/** Limits of `du`, which measures the bytes on disk. */
const WALK = { timeoutMs: 10 * 60_000, maxOutputBytes: 64 * 1024 };
/** Number of the system call openat(2). */
const OPENAT: Partial<Record<NodeJS.Architecture, string>> = { x64: '257', arm64: '56' };

export type BackupGuard = {
  /** Aborts when the backup must stop. The reason is an OperationFailure. */
  signal: AbortSignal;
  /** Records the total size that restic has reported so far. */
  note(status: BackupStatus): void;
  /** Watches sizes, time and threads of the process until it has ended. */
  watch(pid: number): void;
};

/** Total size of the backup's files, holes included, and time since the start of the backup. */
export type Extent = { sizeBytes: number; elapsedMs: number };

/** Returns true if only the bytes on disk can decide whether the backup may continue. */
export function needsMeasure({ sizeBytes, elapsedMs }: Extent): boolean {
  return sizeBytes > FREE_BYTES || elapsedMs > FREE_MS;
}

/**
 * Returns the reason to stop a backup whose files use `allocated` bytes on disk; null if the backup may
 * continue. Pure.
 */
export function excessOf(
  { sizeBytes, elapsedMs }: Extent,
  allocated: number,
): OperationFailure | null {
  const mostBytes = FREE_BYTES + MOST_TIMES * allocated;
  if (sizeBytes > mostBytes) {
    const size = `The files have ${sizeBytes} bytes, including the holes of sparse files and every hard link`;
    const limit = `the limit is ${mostBytes} bytes: 64 GiB plus ${MOST_TIMES} times the ${allocated} bytes that the files use on disk`;
    return new OperationFailure('NoSpace', `${size}; ${limit}`);
  }
  if (elapsedMs <= FREE_MS + allocated / LEAST_BYTES_PER_MS) return null;
  const limit = `one hour plus one second for each MiB of the ${allocated} bytes on disk`;
  return new OperationFailure(
    'DeadlineExceeded',
    `The backup took longer than its limit: ${limit}`,
  );
}

/**
 * `stagingParent` is a folder on the same disk as the files of the jail's folder `name`. If those files
 * cannot be measured, the used bytes of this disk count instead.
 */
export function createBackupGuard(
  place: { jail: Jail; name: string; stagingParent: string },
  { clock, runCommand }: { clock: Clock; runCommand: RunCommand },
): BackupGuard {
  const startedMs = clock.monotonicMs();
  const over = new AbortController();
  let sizeBytes = 0;
  let allocated: number | null = null;

  async function checkExtent(): Promise<void> {
    const extent = { sizeBytes, elapsedMs: clock.monotonicMs() - startedMs };
    if (!needsMeasure(extent)) return;
    // Measures once, and only for a backup above the fixed limits, because `du` may take minutes.
    allocated ??= await allocatedBytes(place, runCommand);
    const excess = excessOf(extent, allocated);
    if (excess !== null) over.abort(excess);
  }

  async function watch(pid: number): Promise<void> {
    let looks: Looks = new Map();
    while (!over.signal.aborted) {
      await clock.sleep(LOOK_MS);
      const opening = await openingThreads(pid);
      if (opening === null) return;
      await checkExtent();
      looks = nextLooks(looks, opening);
      if ([...looks.values()].some(({ count }) => count >= MOST_LOOKS)) {
        const message = 'A file was replaced with a named pipe while it was opened. Back up again';
        over.abort(new OperationFailure('PathRefused', message));
      }
    }
  }

  return {
    signal: over.signal,
    note({ total_bytes: bytes }) {
      sizeBytes = bytes;
    },
    watch: (pid) => void watch(pid),
  };
}

/** Returns the bytes on disk of the tree; the used bytes of the whole disk if they cannot be measured. */
async function allocatedBytes(
  { jail, name, stagingParent }: { jail: Jail; name: string; stagingParent: string },
  runCommand: RunCommand,
): Promise<number> {
  const low = ['setpriv', '--pdeathsig', 'KILL', ...jailCommand(jail), 'nice', '-n', '10'];
  const [program = '', ...args] = [...low, 'du', '-sx', '--block-size=1', '--', `./${name}`];
  const walk = await runCommand(program, args, WALK).catch(() => null);
  const bytes = /^(\d+)\t/.exec(walk?.stdout.trim().split('\n').at(-1) ?? '')?.[1];
  if (walk?.ended === null && bytes !== undefined) return Number(bytes);
  const { blocks, bfree, bsize } = await statfs(stagingParent);
  return (blocks - bfree) * bsize;
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
