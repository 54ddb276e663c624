/** The rotated files of one log, oldest first. They are identified by inode and held open over rotations. */
import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import type { Clock } from '#shared/runtime/clock.ts';

export type LogFile = {
  handle: FileHandle;
  device: bigint;
  inode: bigint;
  /** Number of the file in the order of opening; never reused. */
  order: number;
  /** Files between the previous one and this one were rotated away before they were opened. */
  afterGap: boolean;
};

/** Open files: one more than the engine retains, so that a slow reader pins at most one deleted file. */
const MAX_FILES_HELD = 4;
/** Highest suffix of a rotated file that is checked; the engine retains fewer. */
const MAX_ROTATED = 10;
/** Maximum number of attempts; during a rotation a file name is missing for an instant. */
const ROTATION_ATTEMPTS = 4;
const ROTATION_PAUSE_MS = 2;

/** Rejects if the file cannot be read. */
export async function openFileChain(path: string, clock: Clock) {
  let files: LogFile[] = [];
  let refreshing: Promise<void> | null = null;
  /** The refresh queued behind the running one. */
  let queued: Promise<void> | null = null;
  let closed = false;
  let opened = 0;

  /** Opens the files from the newest back to `known`; `complete` if it reached `known`. */
  async function walk(known: LogFile | null): Promise<{ found: Opened[]; complete: boolean }> {
    const found: Opened[] = [];
    let missing = 0;
    // A rotation only moves files to higher numbers: counting up may find a file twice but skips none.
    for (let number = 0; number <= MAX_ROTATED && missing < 2; number += 1) {
      const file = await openFile(number === 0 ? path : `${path}.${number}`);
      if (file === null) {
        missing += 1;
      } else if (known !== null && isSame(file, known)) {
        await file.handle.close();
        return { found, complete: true };
      } else if (found.some((other) => isSame(other, file))) {
        await file.handle.close();
      } else {
        found.push(file);
      }
    }
    return { found, complete: known === null };
  }

  async function openNewFiles(): Promise<void> {
    const newest = files.at(-1) ?? null;
    if (newest !== null) {
      const now = await stat(path, { bigint: true }).catch(() => null);
      // The file is absent in the middle of a rotation, or after it was deleted with its container.
      if (now === null || (now.ino === newest.inode && now.dev === newest.device)) return;
    }
    for (let attempt = 1; ; attempt += 1) {
      const { found, complete } = await walk(newest);
      if (complete || attempt === ROTATION_ATTEMPTS) {
        append(found, !complete);
        break;
      }
      await closeAll(found);
      await clock.sleep(ROTATION_PAUSE_MS);
    }
    await closeAll(closed ? files.splice(0) : files.splice(0, files.length - MAX_FILES_HELD));
  }

  function startRefresh(): Promise<void> {
    refreshing = openNewFiles().finally(() => {
      refreshing = null;
    });
    return refreshing;
  }

  function append(found: Opened[], afterGap: boolean): void {
    for (const [index, file] of found.toReversed().entries()) {
      files.push({ ...file, order: opened, afterGap: afterGap && index === 0 });
      opened += 1;
    }
  }

  const chain = {
    /** Oldest first; `refresh` changes the list. */
    files: (): readonly LogFile[] => files,
    /** Opens files created by rotations since the last refresh. */
    refresh(): Promise<void> {
      if (refreshing === null) return startRefresh();
      // The running refresh may have started before the rotation that the caller reacts to.
      queued ??= refreshing
        .catch(() => undefined)
        .then(() => {
          queued = null;
          // A refresh started in the meantime suffices; two at once would open the same file twice.
          return refreshing ?? startRefresh();
        });
      return queued;
    },
    async close(): Promise<void> {
      closed = true;
      await (queued ?? refreshing)?.catch(() => undefined);
      const all = files;
      files = [];
      await closeAll(all);
    },
  };

  for (let attempt = 1; attempt <= ROTATION_ATTEMPTS; attempt += 1) {
    await chain.refresh();
    if (files.length > 0 && (await exists(path))) return chain;
    await clock.sleep(ROTATION_PAUSE_MS);
  }
  await chain.close();
  throw new Error(`${path} does not exist`);
}

type Opened = Pick<LogFile, 'handle' | 'device' | 'inode'>;

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Returns null if the file does not exist. */
async function openFile(path: string): Promise<Opened | null> {
  const handle = await open(path, constants.O_RDONLY).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (handle === null) return null;
  const { dev, ino } = await handle.stat({ bigint: true });
  return { handle, device: dev, inode: ino };
}

async function closeAll(files: readonly Opened[]): Promise<void> {
  await Promise.all(files.map(({ handle }) => handle.close()));
}

function isSame(a: Opened, b: Opened): boolean {
  return a.inode === b.inode && a.device === b.device;
}
