/** The switcher's side of an agent that systemd runs from a folder of releases: the current one is exchanged by a link. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentUnit } from './agent-unit.ts';
import type { Replacement } from './installation.ts';
import { type ReleaseTree, releaseNameOf } from './release-tree.ts';
import type { Target } from './update.state.ts';

export type TreeReplacementOptions = {
  tree: ReleaseTree;
  unit: AgentUnit;
  /** Where the agent can be asked on this host. */
  host: string;
  /** Of the agent's compiled sources: those of versions that are gone go, too. */
  cacheFolder: string;
};

export function createTreeReplacement(options: TreeReplacementOptions): Replacement {
  const { tree, unit, host, cacheFolder } = options;
  const isCurrent = (target: Target) => tree.current() === releaseNameOf(target);

  function dropCompiled(): void {
    for (const name of readdirSync(cacheFolder)) {
      rmSync(join(cacheFolder, name), { recursive: true, force: true });
    }
  }

  return {
    async refusal(target, { old_id: old }) {
      const accepted = tree.accepted();
      if (accepted?.sequence !== target.sequence || accepted.digest !== target.digest) {
        return 'it is not what was found to be signed for this host';
      }
      if (!tree.has(target)) return 'its release is gone';
      const isMoved = tree.current() !== old && !isCurrent(target);
      return isMoved ? 'another release was installed meanwhile' : null;
    },
    stopOld: () => unit.stop(),
    async startNew(target, { old_id: old }) {
      tree.switchTo(target, old);
      await unit.start();
    },
    async look(target) {
      return { isAlive: isCurrent(target) && (await unit.isAlive()), host };
    },
    lastWords: () => unit.lastWords(),
    async dropNew(target, { old_id: old }) {
      if (!isCurrent(target) && tree.current() !== old) return false;
      if (!isCurrent(target) && !tree.isOnTrial()) return true;
      await unit.stop();
      // Before the store goes back: whatever is started from here on is the old version.
      tree.switchBack();
      return true;
    },
    async startOld() {
      await unit.start();
      tree.prove();
    },
    async tidy() {
      tree.prove();
      if (tree.prune()) dropCompiled();
    },
  };
}
