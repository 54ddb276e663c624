/**
 * Unpacks a signed version into the folder of releases, at the request of the agent, which cannot write there. The
 * switcher does not trust the agent's row: it checks the manifest again, with this host's variables and the version
 * that it accepted last.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import { LABELS } from '../containers/engine/engine.ts';
import type { OwnContainers } from '../containers/engine/own-containers.ts';
import { judgeAnswer, type ManifestFacts, REFUSALS } from './manifest-rules.ts';
import type { ReleaseTree } from './release-tree.ts';
import type { SignedImage } from './signed-image.ts';
import { unpackTree } from './unpack-tree.ts';
import type { Target, UpdateRow } from './update.state.ts';

/** Folder of the release in the image. */
export const TREE_IN_IMAGE = '/opt/podwright';
const NEEDED = ['package.json', 'agent/main.ts', 'agent/updates/main.ts', 'node_modules/.bin/node'];
/** Limits of a trial run. The first run compiles the whole agent. */
const TRIAL = { timeoutMs: 60_000, maxOutputBytes: 64 * 1024 };
/** Trial runs of the new release. The second one loads everything that the agent loads. */
const TRIALS = [
  ['--check-config', "rejects this host's variables"],
  ['--version', 'does not load'],
] as const;
const SYNC = { timeoutMs: 600_000, maxOutputBytes: 4_096 };

export type TreeStagingOptions = {
  clock: Clock;
  tree: ReleaseTree;
  image: SignedImage;
  containers: Pick<OwnContainers, 'copyOut'>;
  runCommand: RunCommand;
  /** The agent's variables. The new version must accept them. */
  environment: Record<string, string>;
  facts: Pick<
    ManifestFacts,
    'keys' | 'root' | 'image' | 'executorId' | 'agentVersion' | 'platform'
  >;
};

export function createTreeStaging(options: TreeStagingOptions) {
  const { clock, tree, image, containers, runCommand, facts } = options;

  /** Throws unless a trusted key signed the target for this host. */
  function accept({ target, signed }: { target: Target; signed: UpdateRow['signed'] }): void {
    const before = tree.accepted();
    if (before?.sequence === target.sequence && before.digest === target.digest) return;
    const known = before ?? { sequence: 0, digest: null, trust: null };
    const row = { ...known, target: null, denied_until_ms: 0 };
    const nowMs = clock.now();
    const { ruling, trust } = judgeAnswer(signed, { ...facts, nowMs, running: [], row });
    if (ruling.outcome === 'refused') throw new Error(REFUSALS[ruling.reason]);
    const { sequence, digest } = ruling.target;
    if (sequence !== target.sequence || digest !== target.digest) {
      throw new Error('the manifest requires another digest');
    }
    tree.accept({ ...target, trust });
  }

  async function tryRelease(folder: string): Promise<void> {
    for (const path of NEEDED) statSync(join(folder, path));
    const node = join(folder, 'node_modules/.bin/node');
    const bounds = { ...TRIAL, env: options.environment };
    for (const [option, problem] of TRIALS) {
      const args = [join(folder, 'agent/main.ts'), option];
      const { exitCode, stdout, stderr } = await runCommand(node, args, bounds);
      if (exitCode !== 0) throw new Error(`the new version ${problem}: ${stdout}${stderr}`);
    }
  }

  async function fill(target: Target): Promise<void> {
    const folder = tree.openDraft();
    const place = {
      name: `podwright-update-${facts.executorId}`,
      labels: { [LABELS.agent]: facts.executorId, [LABELS.release]: String(target.sequence) },
    };
    await containers.copyOut(image.referenceOf(target), TREE_IN_IMAGE, place, (archive) =>
      unpackTree(archive, folder),
    );
    await tryRelease(folder);
    const { exitCode, stderr } = await runCommand('sync', ['--file-system', folder], SYNC);
    if (exitCode !== 0) throw new Error(`sync: ${stderr}`);
    tree.keepDraft(target, clock.now());
  }

  /** Resolves when the target is a complete release. Rejects with the reason; never changes what runs. */
  return async (target: Target, signed: UpdateRow['signed']): Promise<void> => {
    accept({ target, signed });
    if (!tree.has(target)) {
      tree.prune();
      if (!(await image.isPresent(target))) throw new Error('the engine does not have the image');
      try {
        await fill(target);
      } finally {
        tree.dropDraft();
      }
    }
    await image.drop(target);
  };
}
