/** Tells when a file may have changed: at once where the system says so, within a second anyway. */
import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Clock } from '#shared/runtime/clock.ts';
import { makeFolder } from '#shared/runtime/files.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';

/** The longest that a change goes unseen where watching does not work. */
const POLL_MS = 1_000;

/** Calls `look` at once and after every change, one at a time; the file may come and go. */
export function watchFile(options: {
  path: string;
  clock: Clock;
  look(): void | Promise<void>;
  onError(error: unknown): void;
}): { stop(): Promise<void> } {
  const { path, clock, look, onError } = options;
  const run = async () => look();
  const loop: Loop = startLoop({ clock, intervalMs: POLL_MS, run, onError });
  const watcher = watchFolder(path, () => loop.wake());
  return {
    async stop() {
      watcher?.close();
      await loop.stop();
    },
  };
}

/** The folder is watched, since a renamed file is another file. Null where it cannot be. */
function watchFolder(path: string, onChange: () => void): FSWatcher | null {
  try {
    makeFolder(dirname(path));
    const watcher = watch(dirname(path), { persistent: false }, (_, name) => {
      if (name === null || name === basename(path)) onChange();
    });
    watcher.on('error', () => undefined);
    return watcher;
  } catch {
    return null;
  }
}
