/**
 * The agent's side of an installation that systemd runs from a folder of releases. The agent cannot write that folder.
 * It requests staging and switching with a file in its home, which systemd watches (podwright-agent-update.path) to
 * start the switcher.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ContainerEngine } from '../containers/engine/engine.ts';
import type { Installation } from './installation.ts';
import { digestOfRelease, type ReleaseTree } from './release-tree.ts';
import type { SignedImage } from './signed-image.ts';
import type { Target } from './update.state.ts';

export type TreeInstallationOptions = {
  clock: Clock;
  /** AGENT_UPDATE_TREE. */
  folder: string;
  /** Folder of the release that this process runs from. */
  own: string;
  /** Folder of systemd's units. */
  unitsFolder: string;
  tree: ReleaseTree;
  image: SignedImage;
  engine: Pick<ContainerEngine, 'info'>;
  request: UpdateRequest;
};

/** Required free space, as in install.sh: a release, its image in the engine, and as much in reserve. */
const NEEDED_BYTES = 1_500 * 1024 * 1024;
const FETCH_MS = 15 * 60_000;
const STAGE_MS = 15 * 60_000;
const POLL_MS = 500;
/** Services that may run from the same folder. An update of the agent would update them too, without a probation. */
const OTHER_SERVICES = ['podwright-validator.service', 'podwright-central.service'];
const MAX_PROBLEM_CHARS = 1_000;

export function createTreeInstallation(options: TreeInstallationOptions): Installation {
  const { clock, folder, own, tree, image, engine, request } = options;
  const name = basename(own);

  function requireOwn(): void {
    const refuse = (why: string) => new Error(`AGENT_UPDATE_TREE ${folder}: ${why}`);
    if (dirname(own) !== dirname(tree.pathOf(name))) throw refuse(`this agent runs from ${own}`);
    if (tree.current() !== name) throw refuse('another release is current: restart the agent');
    const other = OTHER_SERVICES.find((unit) => existsSync(join(options.unitsFolder, unit)));
    if (other !== undefined)
      throw refuse(`${other} runs from the same folder: update with install.sh`);
  }

  async function hasSpaceAt(path: string): Promise<boolean> {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize >= NEEDED_BYTES;
  }

  /** Does not check an engine whose folder is on another file system: the engine itself reports a full disk. */
  async function engineHasSpace(): Promise<boolean> {
    const { rootDir } = await engine.info();
    return !existsSync(rootDir) || hasSpaceAt(rootDir);
  }

  async function waitForStaging(target: Target): Promise<void> {
    const giveUpMs = clock.monotonicMs() + STAGE_MS;
    while (request.isMade()) {
      if (clock.monotonicMs() >= giveUpMs) {
        throw new Error('podwright-agent-update.service did not respond: is its .path enabled?');
      }
      await clock.sleep(POLL_MS);
    }
    if (!tree.has(target)) throw new Error(request.problem());
  }

  return {
    async running() {
      requireOwn();
      const digest = digestOfRelease(name);
      return digest === null ? [] : [digest];
    },
    hasSpace: async () => (await hasSpaceAt(folder)) && (await engineHasSpace()),
    has: tree.has,
    async stage(target) {
      if (tree.has(target)) return;
      // Docker may have evicted the image since it was fetched, because no container uses it.
      await image.fetch(target, clock.deadline(FETCH_MS));
      request.make();
      await waitForStaging(target);
    },
    // Nothing to remove now: releases are pruned when further ones are added.
    unstage: async () => undefined,
    rollbackPoint: async () => ({ old_id: name, restart_policy: {} }),
    async startSwitcher() {
      if (!request.isMade()) request.make();
    },
  };
}

export type UpdateRequest = ReturnType<typeof createUpdateRequest>;

/** The file in the agent's home that starts the switcher's service, and the file with the reason if it fails. */
export function createUpdateRequest(home: string) {
  const [file, problemFile] = [join(home, 'update-request'), join(home, 'update-problem')];
  return {
    isMade: () => existsSync(file),
    /** Creates the file. It need not be durable: after a power cut the agent reads its row and repeats the request. */
    make(): void {
      rmSync(problemFile, { force: true });
      writeFileSync(file, '', { mode: 0o600 });
    },
    /** Deletes the request. Called last: without the file systemd does not start the service again. */
    settle(problem: string | null): void {
      if (problem !== null)
        writeFileSync(problemFile, problem.slice(0, MAX_PROBLEM_CHARS), { mode: 0o600 });
      rmSync(file, { force: true });
    },
    problem(): string {
      const unknown = 'see journalctl --unit podwright-agent-update';
      return existsSync(problemFile) ? readFileSync(problemFile, 'utf8') : unknown;
    },
  };
}
