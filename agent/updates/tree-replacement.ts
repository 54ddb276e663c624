/**
 * The switcher's side of an installation that systemd runs from a folder of releases: an update replaces the link
 * `current`.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '#shared/runtime/errors.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import type { Replacement } from './installation.ts';
import { type ReleaseTree, releaseNameOf } from './release-tree.ts';
import type { Target } from './update.state.ts';

export type TreeReplacementOptions = {
  tree: ReleaseTree;
  unit: AgentUnit;
  /** Host of the agent's listener. */
  host: string;
  /** Node's compile cache. It is cleared when releases are removed. */
  cacheFolder: string;
};

export function createTreeReplacement(options: TreeReplacementOptions): Replacement {
  const { tree, unit, host, cacheFolder } = options;
  const isCurrent = (target: Target) => tree.current() === releaseNameOf(target);

  function clearCache(): void {
    // The installer's mark begins with a dot.
    for (const name of readdirSync(cacheFolder).filter((each) => !each.startsWith('.'))) {
      rmSync(join(cacheFolder, name), { recursive: true, force: true });
    }
  }

  return {
    async refusal(target, { old_id: old }) {
      const accepted = tree.accepted();
      if (accepted?.sequence !== target.sequence || accepted.digest !== target.digest) {
        return 'it is not the version that was verified for this host';
      }
      if (!tree.has(target)) return 'its release was removed';
      const wasReplaced = tree.current() !== old && !isCurrent(target);
      return wasReplaced ? 'another release was installed during the update' : null;
    },
    stopOld: () => unit.stop(),
    async startNew(target, { old_id: old }) {
      tree.switchTo(target, old);
      await unit.start();
    },
    async status(target) {
      return { isAlive: isCurrent(target) && (await unit.isAlive()), host };
    },
    lastLogLines: () => unit.lastLogLines(),
    async removeNew(target, { old_id: old }) {
      if (!isCurrent(target) && tree.current() !== old) return false;
      if (!isCurrent(target) && !tree.isOnTrial()) return true;
      await unit.stop();
      // Runs before the store is restored, so that every start from now on is of the old version.
      tree.switchBack();
      return true;
    },
    async startOld() {
      await unit.start();
      tree.prove();
    },
    async cleanUp() {
      tree.prove();
      if (tree.prune()) clearCache();
    },
  };
}

const UNIT = 'podwright-agent.service';
/** Limits of a systemctl call. The timeout is longer than the unit's TimeoutStopSec=. */
const BOUNDS = { timeoutMs: 60_000, maxOutputBytes: 64 * 1024 };
const LOG_LINES = '10';
const MAX_LOG_CHARS = 2_000;

export type AgentUnit = ReturnType<typeof createAgentUnit>;

/** The agent's systemd service. */
export function createAgentUnit(runCommand: RunCommand) {
  async function systemctl(...args: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await runCommand('systemctl', [...args, UNIT], BOUNDS);
    if (exitCode !== 0) throw new Error(`systemctl ${args.join(' ')}: ${stderr.trim()}`);
    return stdout;
  }

  return {
    /** Resolves when the service has ended. Succeeds if it does not run. */
    async stop(): Promise<void> {
      await systemctl('stop');
    },
    /** Resolves when the start is queued. A running service is not restarted. */
    async start(): Promise<void> {
      await systemctl('start', '--no-block');
    },
    /** Returns true if the service was started and has not ended since. A restart by systemd counts as an end. */
    async isAlive(): Promise<boolean> {
      const names = 'ActiveState,SubState,NRestarts,Job';
      const shown = await systemctl('show', `--property=${names}`);
      const { ActiveState, SubState, NRestarts, Job } = Object.fromEntries(
        shown.split('\n').map((line) => line.split('=', 2)),
      );
      if (NRestarts !== '0' || SubState === 'auto-restart') return false;
      // A queued start.
      const isDue = Job !== undefined && Job !== '0';
      return isDue || ['active', 'activating', 'reloading'].includes(ActiveState);
    },
    /** Returns the last lines of the service's journal. */
    async lastLogLines(): Promise<string> {
      const args = ['--unit', UNIT, '--lines', LOG_LINES, '--output', 'cat', '--no-pager'];
      const lines = await runCommand('journalctl', args, BOUNDS).then(
        ({ stdout }) => stdout,
        (error: unknown) => messageOf(error),
      );
      return lines.slice(-MAX_LOG_CHARS);
    },
  };
}
