/**
 * Handover to a newer release: an outdated gateway exits, and systemd starts the gateway of the current release. It
 * waits, without a timeout, until no client is logged in; the idle timeout ends unused sessions after a day.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import { createReleaseTree } from '../updates/release-tree.ts';

export type HandoverPorts = {
  log: Log;
  /** Folder of the newer release that runs this host's services and has passed its probation; null if there is none. */
  successor(): string | null;
  /** Why the release's gateway would not start; null if it would. */
  problemOf(folder: string): Promise<string | null>;
  /** Closes all listeners and returns true, unless a client is logged in. */
  closeIfIdle(): boolean;
};

export const HANDOVER_CHECK_MS = 2_000;
/** Limits of the trial run, which loads all modules of the gateway. */
const TRIAL_LIMITS = { timeoutMs: 60_000, maxOutputBytes: 16 * 1024 };

/** Returns a check that resolves with true once the listeners are closed and this process may exit. */
export function createHandover({ log, successor, problemOf, closeIfIdle }: HandoverPorts) {
  let tried: { folder: string; fits: boolean } | null = null;
  return async (): Promise<boolean> => {
    const folder = successor();
    if (folder === null) return false;
    if (tried?.folder !== folder) {
      const problem = await problemOf(folder);
      tried = { folder, fits: problem === null };
      if (problem === null)
        log.info(
          { release: folder },
          'handing over to a newer release when no client is logged in',
        );
      else
        log.error(
          { release: folder, detail: problem },
          'gateway of the newer release does not start; not handing over',
        );
    }
    // The current release may have changed during the trial run.
    return tried.fits && successor() === folder && closeIfIdle();
  };
}

/** Looks up the newer release in `root`; `own` is the folder of this process's release. */
export function createSuccessorLookup(root: string, own: string): () => string | null {
  const tree = createReleaseTree(root);
  return () => {
    const name = tree.current();
    if (name === null || dirname(own) !== dirname(tree.pathOf(name))) return null;
    return tree.pathOf(name) === own || tree.isOnTrial() ? null : tree.pathOf(name);
  };
}

/**
 * Returns a trial run: it runs `--check-config` of the release's gateway with `environment`, and resolves with the
 * problem or null.
 */
export function createTrial(runCommand: RunCommand, environment: Record<string, string>) {
  return async (folder: string): Promise<string | null> => {
    const program = join(folder, 'agent/ssh-gateway/main.ts');
    if (!existsSync(program)) return `${program} does not exist`;
    const node = join(folder, 'node_modules/.bin/node');
    try {
      const bounds = { ...TRIAL_LIMITS, env: environment };
      const { exitCode, stderr } = await runCommand(node, [program, '--check-config'], bounds);
      return exitCode === 0 ? null : `it exits with ${exitCode}: ${stderr.trim()}`;
    } catch (error) {
      return messageOf(error);
    }
  };
}
