/** The files of one log, oldest first, told apart by inode and held open, so that no rotation hides what was written. */
import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import type { Clock } from '#shared/runtime/clock.ts';

export type LogFile = {
  handle: FileHandle;
  device: bigint;
  inode: bigint;
  /** Counts files from the first that was opened; never used again. */
  order: number;
  /** Files between the one before and this one were rotated away unseen. */
  afterGap: boolean;
};

/** Held at once: one more than the engine keeps, so that a slow reader pins one removed file at most. */
const MAX_FILES_HELD = 4;
/** Rotated files looked for; the engine keeps fewer. */
const MAX_ROTATED = 10;
/** In the midst of a rotation a name is missing for an instant. */
const LOOKS_AT_ROTATION = 4;
const ROTATION_PAUSE_MS = 2;

/** Rejects when the file cannot be read. */
export async function openFileChain(path: string, clock: Clock) {
  let files: LogFile[] = [];
  let refreshing: Promise<void> | null = null;
  /** The look that follows the one under way. */
  let afterwards: Promise<void> | null = null;
  let closed = false;
  let opened = 0;

  /** Every name that exists from the newest back to `known`; `complete` when `known` was met. */
  async function walk(known: LogFile | null): Promise<{ found: Opened[]; complete: boolean }> {
    const found: Opened[] = [];
    let missing = 0;
    // Files move to higher numbers only: going up, one may be met twice but none is passed over.
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

  async function look(): Promise<void> {
    const newest = files.at(-1) ?? null;
    if (newest !== null) {
      const now = await stat(path, { bigint: true }).catch(() => null);
      // Absent: between two steps of a rotation, or removed with its container.
      if (now === null || (now.ino === newest.inode && now.dev === newest.device)) return;
    }
    for (let looks = 1; ; looks += 1) {
      const { found, complete } = await walk(newest);
      if (complete || looks === LOOKS_AT_ROTATION) {
        append(found, !complete);
        break;
      }
      await closeAll(found);
      await clock.sleep(ROTATION_PAUSE_MS);
    }
    await closeAll(closed ? files.splice(0) : files.splice(0, files.length - MAX_FILES_HELD));
  }

  function startLook(): Promise<void> {
    refreshing = look().finally(() => {
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
    /** Oldest first; changes with `refresh`. */
    files: (): readonly LogFile[] => files,
    /** Notices rotations since. */
    refresh(): Promise<void> {
      if (refreshing === null) return startLook();
      // One under way may have looked before the rotation that the caller knows of.
      afterwards ??= refreshing
        .catch(() => undefined)
        .then(() => {
          afterwards = null;
          // One that began meanwhile will do; two at once would find the same file twice.
          return refreshing ?? startLook();
        });
      return afterwards;
    },
    async close(): Promise<void> {
      closed = true;
      await (afterwards ?? refreshing)?.catch(() => undefined);
      const all = files;
      files = [];
      await closeAll(all);
    },
  };

  for (let looks = 1; looks <= LOOKS_AT_ROTATION; looks += 1) {
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

/** Null when there is none. */
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
