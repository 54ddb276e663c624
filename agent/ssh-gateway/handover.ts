/**
 * A gateway that has become old gives way: it ends, and systemd starts the one of the release that is current. It waits until nobody
 * is logged in, as long as that takes, for a session is a tenant's work; an idle one ends by itself after a day.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import { createReleaseTree } from '../updates/release-tree.ts';

export type SuccessionPorts = {
  log: Log;
  /** The folder of another release that runs this host's services now, and has proved itself; null: there is none. */
  successor(): string | null;
  /** Why its gateway would not start here; null: it would. */
  problemOf(folder: string): Promise<string | null>;
  /** Lets nobody in any more and answers true, unless somebody is logged in. */
  closeIfFree(): boolean;
};

/** How often it looks. */
export const SUCCESSION_LOOK_MS = 2_000;
/** It loads all of its modules. */
const TRY = { timeoutMs: 60_000, maxOutputBytes: 16 * 1024 };

/** Each look answers whether the doors are closed now, so that this process may end. */
export function createSuccession({ log, successor, problemOf, closeIfFree }: SuccessionPorts) {
  let tried: { folder: string; fits: boolean } | null = null;
  return async (): Promise<boolean> => {
    const folder = successor();
    if (folder === null) return false;
    if (tried?.folder !== folder) {
      const problem = await problemOf(folder);
      tried = { folder, fits: problem === null };
      if (problem === null) log.info({ release: folder }, 'gives way once nobody is logged in');
      else log.error({ release: folder, detail: problem }, 'its gateway would not start: stays');
    }
    // Looked at anew: it may have been exchanged while its gateway was tried.
    return tried.fits && successor() === folder && closeIfFree();
  };
}

/** By the releases in `root`; `own` is the folder of this process's. */
export function createSuccessor(root: string, own: string): () => string | null {
  const tree = createReleaseTree(root);
  return () => {
    const name = tree.current();
    if (name === null || dirname(own) !== dirname(tree.pathOf(name))) return null;
    return tree.pathOf(name) === own || tree.isOnTrial() ? null : tree.pathOf(name);
  };
}

/** Has the release's gateway read `environment`. */
export function createTrial(runCommand: RunCommand, environment: Record<string, string>) {
  return async (folder: string): Promise<string | null> => {
    const program = join(folder, 'agent/ssh-gateway/main.ts');
    if (!existsSync(program)) return `there is no ${program}`;
    const node = join(folder, 'node_modules/.bin/node');
    try {
      const bounds = { ...TRY, env: environment };
      const { exitCode, stderr } = await runCommand(node, [program, '--check-config'], bounds);
      return exitCode === 0 ? null : `it ends with ${exitCode}: ${stderr.trim()}`;
    } catch (error) {
      return messageOf(error);
    }
  };
}
