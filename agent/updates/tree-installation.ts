/**
 * The agent's side where systemd runs it from a folder of releases, which it cannot write: it has the image at hand, and asks
 * the switcher's service for the rest by a file in its home that systemd watches (podwright-agent-update.path).
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
  /** The release that this process is of: the folder of its programs. */
  own: string;
  /** Where systemd has units of this host. */
  unitsFolder: string;
  tree: ReleaseTree;
  image: SignedImage;
  engine: Pick<ContainerEngine, 'info'>;
  request: UpdateRequest;
};

/** As install.sh asks for: a release, its image in the engine, and as much to spare. */
const NEEDED_BYTES = 1_500 * 1024 * 1024;
const FETCH_MS = 15 * 60_000;
const STAGE_MS = 15 * 60_000;
const LOOK_MS = 500;
/** They run from the same folder, and would change with the agent, unwatched. */
const OTHERS = ['podwright-validator.service', 'podwright-central.service'];
const MAX_WORDS_CHARS = 1_000;

export function createTreeInstallation(options: TreeInstallationOptions): Installation {
  const { clock, folder, own, tree, image, engine, request } = options;
  const name = basename(own);

  function requireOwn(): void {
    const refuse = (why: string) => new Error(`AGENT_UPDATE_TREE ${folder}: ${why}`);
    if (dirname(own) !== dirname(tree.pathOf(name))) throw refuse(`this agent runs from ${own}`);
    if (tree.current() !== name) throw refuse('its current release is another: restart the agent');
    const other = OTHERS.find((unit) => existsSync(join(options.unitsFolder, unit)));
    if (other !== undefined) throw refuse(`${other} runs from there too: update by install.sh`);
  }

  async function hasRoomAt(path: string): Promise<boolean> {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize >= NEEDED_BYTES;
  }

  /** Of an engine whose folder is not of this file system only its own refusal can tell. */
  async function engineHasRoom(): Promise<boolean> {
    const { rootDir } = await engine.info();
    return !existsSync(rootDir) || hasRoomAt(rootDir);
  }

  async function waitForStaging(target: Target): Promise<void> {
    const giveUpMs = clock.monotonicMs() + STAGE_MS;
    while (request.isMade()) {
      if (clock.monotonicMs() >= giveUpMs) {
        throw new Error('podwright-agent-update.service has not answered: is its .path enabled?');
      }
      await clock.sleep(LOOK_MS);
    }
    if (!tree.has(target)) throw new Error(request.problem());
  }

  return {
    kind: 'image-digest',
    async running() {
      requireOwn();
      const digest = digestOfRelease(name);
      return digest === null ? [] : [digest];
    },
    hasRoom: async () => (await hasRoomAt(folder)) && (await engineHasRoom()),
    async fetch(target, signal) {
      if (!tree.has(target)) await image.fetch(target, signal);
    },
    async stage(target) {
      if (tree.has(target)) return;
      // It may have gone since it was fetched: unused images do when the disk fills.
      await image.fetch(target, clock.deadline(FETCH_MS));
      request.make();
      await waitForStaging(target);
    },
    // The oldest releases go when there are more.
    unstage: async () => undefined,
    passage: async () => ({ old_id: name, restart_policy: {} }),
    async startSwitcher() {
      if (!request.isMade()) request.make();
    },
  };
}

export type UpdateRequest = ReturnType<typeof createUpdateRequest>;

/** The file in the agent's home that starts the switcher's service, and the one in which that says why it did nothing. */
export function createUpdateRequest(home: string) {
  const [file, words] = [join(home, 'update-request'), join(home, 'update-problem')];
  return {
    isMade: () => existsSync(file),
    /** One that a power cut takes back is made again: the row that asks for it is on disk. */
    make(): void {
      rmSync(words, { force: true });
      writeFileSync(file, '', { mode: 0o600 });
    },
    /** The last thing that is done: without the file nothing starts the service again. */
    settle(problem: string | null): void {
      if (problem !== null)
        writeFileSync(words, problem.slice(0, MAX_WORDS_CHARS), { mode: 0o600 });
      rmSync(file, { force: true });
    },
    problem(): string {
      const unknown = 'see journalctl --unit podwright-agent-update';
      return existsSync(words) ? readFileSync(words, 'utf8') : unknown;
    },
  };
}
