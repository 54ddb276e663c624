/**
 * The folder of releases that services run from, with the layout of systemd/install.sh: `releases/<name>`, the links
 * `current` and `previous`, and the file `trial`. `trial` exists while the current release is on probation, and names
 * the release to roll back to. A release from an update is named by its image's digest. Only the switcher writes the
 * folder; it holds the lock of install.sh.
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
import { Trust } from './key-trust.ts';
import type { Target } from './update.state.ts';

/**
 * Number of releases to retain, as in install.sh. The current release, the previous release and the release in `trial`
 * are always retained.
 */
const KEPT_RELEASES = 3;
/** Folder of a release that is being unpacked. Not a valid release name. */
const DRAFT = '.update';
/** Prefix of a release that is being removed, so that a release without the prefix is always complete. */
const GONE = '.gone-';
const RELEASE_LINK = /^releases\/([A-Za-z0-9][A-Za-z0-9._-]*)$/;

/** The version that was last verified for this host, and the key set, in a file that the agent cannot write. */
const Accepted = z.object({
  sequence: z.int(),
  digest: Digest,
  trust: Trust.nullable().default(null),
});
type Accepted = z.output<typeof Accepted>;

export type ReleaseTree = ReturnType<typeof createReleaseTree>;

/** Returns the name of the release from the image of this digest. */
export function releaseNameOf({ digest }: Pick<Target, 'digest'>): string {
  return digest.replace(':', '-');
}

/** Returns the digest in a release's name; null for a release that was installed by hand. */
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

  /** Renames the release before it removes the files, because the removal may be interrupted. */
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
    /** The release to roll back to; null if there is none. */
    before: (): string | null => onTrial() ?? nameIn(() => readlinkSync(previousLink)),
    isOnTrial: (): boolean => onTrial() !== null,

    /** Creates an empty folder for the files of a release. */
    openDraft(): string {
      rmSync(draft, { recursive: true, force: true });
      mkdirSync(draft, { mode: 0o755 });
      return draft;
    },
    dropDraft: (): void => rmSync(draft, { recursive: true, force: true }),
    /** Renames the draft to its final name. Its files must already be synced to disk. */
    keepDraft(target: Target, nowMs: number): void {
      utimesSync(draft, nowMs / 1_000, nowMs / 1_000);
      renameSync(draft, pathOf(releaseNameOf(target)));
      syncFolder(releases);
    },
    drop: (target: Target): void => remove(releaseNameOf(target)),

    /** Replaces `current` atomically. Starts the trial, which `prove` ends. */
    switchTo(target: Target, from: string): void {
      if (onTrial() === null) writeDurably(trial, `releases/${from}\n`);
      const name = releaseNameOf(target);
      if (current() !== name) link(name, currentLink);
    },
    /** Makes the release of `before` current again. The trial continues. */
    switchBack(): void {
      const name = onTrial() ?? nameIn(() => readlinkSync(previousLink));
      if (name !== null && current() !== name) link(name, currentLink);
    },
    /** Ends the trial, whichever release is current. */
    prove(): void {
      const name = onTrial();
      if (name !== null && name !== current()) link(name, previousLink);
      rmSync(trial, { force: true });
      syncFolder(root);
    },
    /** Removes the oldest releases. Returns true if it removed any. */
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

    /**
     * The last accepted target and key set; null before the first update. Throws an error with the file's name if it is
     * damaged.
     */
    accepted(): Accepted | null {
      if (!existsSync(journal)) return null;
      try {
        return Accepted.parse(JSON.parse(readFileSync(journal, 'utf8')));
      } catch (cause) {
        // An empty history would let an older version be installed.
        const message = `${journal} is damaged: delete it if this host runs the newest version`;
        throw new Error(message, { cause });
      }
    },
    accept({ sequence, digest, trust }: Accepted): void {
      writeDurably(journal, `${JSON.stringify({ sequence, digest, trust })}\n`);
    },
  };
}

/** Returns the release that a link or the trial file names; null if it is missing or invalid. */
function nameIn(read: () => string): string | null {
  try {
    return RELEASE_LINK.exec(read())?.[1] ?? null;
  } catch {
    return null;
  }
}

/** Writes the file atomically. */
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
