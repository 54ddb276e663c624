/**
 * The folder of releases that services run from, as systemd/install.sh keeps it: `releases/<name>`, `current`, `previous`, and
 * `trial`, which is there while the current release has not proved itself and names the one to go back to. A release that an
 * update brought is named by its image's digest. Written by the switcher alone, which holds the lock of install.sh.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { syncFolder } from '#shared/runtime/files.ts';
import { Digest } from '#shared/updates/update-manifest.ts';
import type { Target } from './update.state.ts';

/** Beside the current one, the one before and the one to go back to; as install.sh has it. */
const KEPT_RELEASES = 3;
/** What is being put together; not a release's name. */
const DRAFT = '.update';
/** Before what is being removed: a release that has its name is whole. */
const GONE = '.gone-';
const RELEASE_LINK = /^releases\/([A-Za-z0-9][A-Za-z0-9._-]*)$/;

/** What was last found to be signed for this host, in a file that no agent can write. */
const Accepted = z.object({ sequence: z.int(), digest: Digest });

export type ReleaseTree = ReturnType<typeof createReleaseTree>;

/** What a release is called that came from the image of this digest. */
export function releaseNameOf({ digest }: Pick<Target, 'digest'>): string {
  return digest.replace(':', '-');
}

/** The digest that a release is named by; null of one that somebody has installed. */
export function digestOfRelease(name: string): string | null {
  return Digest.safeParse(name.replace('-', ':')).data ?? null;
}

export function createReleaseTree(root: string) {
  const [releases, draft] = [join(root, 'releases'), join(root, 'releases', DRAFT)];
  const [currentLink, previousLink] = [join(root, 'current'), join(root, 'previous')];
  const [trial, journal] = [join(root, 'trial'), join(root, 'update.json')];
  const pathOf = (name: string) => join(releases, name);
  const current = () => nameIn(() => readlinkSync(currentLink));
  const onTrial = () => nameIn(() => readFileSync(trial, 'utf8').trim());

  function link(name: string, path: string): void {
    const fresh = `${path}.new`;
    rmSync(fresh, { force: true });
    symlinkSync(`releases/${name}`, fresh);
    renameSync(fresh, path);
    syncFolder(root);
  }

  /** Without its name before without its files, also when that is cut off. */
  function remove(name: string): void {
    const gone = join(releases, GONE + name);
    rmSync(gone, { recursive: true, force: true });
    renameSync(pathOf(name), gone);
    syncFolder(releases);
    rmSync(gone, { recursive: true, force: true });
  }

  return {
    pathOf,
    current,
    has: (target: Target): boolean => existsSync(pathOf(releaseNameOf(target))),
    /** The release to go back to from the current one; null where there is none. */
    before: (): string | null => onTrial() ?? nameIn(() => readlinkSync(previousLink)),
    isOnTrial: (): boolean => onTrial() !== null,

    /** An empty folder for the files of a release. */
    openDraft(): string {
      rmSync(draft, { recursive: true, force: true });
      mkdirSync(draft, { mode: 0o755 });
      return draft;
    },
    dropDraft: (): void => rmSync(draft, { recursive: true, force: true }),
    /** The draft, all of it on disk, gets its name: what has one is whole. `nowMs` is when it came. */
    keepDraft(target: Target, nowMs: number): void {
      utimesSync(draft, nowMs / 1_000, nowMs / 1_000);
      renameSync(draft, pathOf(releaseNameOf(target)));
      syncFolder(releases);
    },
    drop: (target: Target): void => remove(releaseNameOf(target)),

    /** A rename: whoever looks finds the one or the other. On trial from before the switch until `prove`. */
    switchTo(target: Target, from: string): void {
      if (onTrial() === null) writeDurably(trial, `releases/${from}\n`);
      const name = releaseNameOf(target);
      if (current() !== name) link(name, currentLink);
    },
    /** Back to what `before` says; still on trial. */
    switchBack(): void {
      const name = onTrial() ?? nameIn(() => readlinkSync(previousLink));
      if (name !== null && current() !== name) link(name, currentLink);
    },
    /** The trial is over, whichever release is current now. */
    prove(): void {
      const name = onTrial();
      if (name !== null && name !== current()) link(name, previousLink);
      rmSync(trial, { force: true });
      syncFolder(root);
    },
    /** Removes the oldest; true when there was something to remove. */
    prune(): boolean {
      const kept = [current(), onTrial(), nameIn(() => readlinkSync(previousLink))];
      const names = readdirSync(releases);
      for (const left of names.filter((name) => name.startsWith(GONE))) {
        rmSync(join(releases, left), { recursive: true, force: true });
      }
      const newestFirst = names
        .filter((name) => !name.startsWith('.'))
        .map((name) => ({ name, atMs: statSync(pathOf(name)).mtimeMs }))
        .toSorted((one, other) => other.atMs - one.atMs);
      const old = newestFirst.slice(KEPT_RELEASES).filter(({ name }) => !kept.includes(name));
      for (const { name } of old) remove(name);
      return old.length > 0;
    },

    /** Null before the first. */
    accepted(): Target | null {
      if (!existsSync(journal)) return null;
      return Accepted.parse(JSON.parse(readFileSync(journal, 'utf8')));
    },
    accept({ sequence, digest }: Target): void {
      writeDurably(journal, `${JSON.stringify({ sequence, digest })}\n`);
    },
  };
}

/** The release that a link or the trial names; null where there is none, or something else. */
function nameIn(read: () => string): string | null {
  try {
    return RELEASE_LINK.exec(read())?.[1] ?? null;
  } catch {
    return null;
  }
}

/** Whole or not at all. */
function writeDurably(path: string, text: string): void {
  const fresh = join(dirname(path), `${basename(path)}.new`);
  const file = openSync(fresh, 'w', 0o644);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(fresh, path);
  syncFolder(dirname(path));
}
