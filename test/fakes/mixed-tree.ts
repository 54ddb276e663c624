/** A tree of everything that a pod may keep, and its fingerprint: content and metadata of every entry. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

const MIB = 1024 * 1024;
const SMALL_FILES = 2_000;
const ODD_NAMES = [
  'with space',
  'neue\nzeile',
  '-dash',
  'ünïcödé',
  '*?[glob]',
  '"quoted"',
  '.hidden',
];

/** More than 50 MiB: random, text, sparse, many small files, links, odd names, modes, owners, times, attributes. */
export function writeMixedTree(folder: string): void {
  mkdirSync(join(folder, 'small'), { recursive: true });
  writeFileSync(join(folder, 'random'), randomBytes(16 * MIB));
  writeFileSync(join(folder, 'text'), 'the same line again and again\n'.repeat(800_000));
  writeFileSync(join(folder, 'sparse'), 'begin');
  truncateSync(join(folder, 'sparse'), 12 * MIB);
  for (let count = 0; count < SMALL_FILES; count += 1) {
    writeFileSync(join(folder, 'small', `${count}`), `small ${count}\n`);
  }
  for (const name of ODD_NAMES) writeFileSync(join(folder, name), name);
  mkdirSync(join(folder, 'empty folder'));
  writeFileSync(join(folder, 'modes'), 'private');
  chmodSync(join(folder, 'modes'), 0o4711);
  chmodSync(join(folder, 'small'), 0o750);
  linkSync(join(folder, 'text'), join(folder, 'hard link'));
  symlinkSync('text', join(folder, 'link'));
  symlinkSync('/etc/hostname', join(folder, 'link out'));
  symlinkSync('nowhere', join(folder, 'dangling'));
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  chownSync(join(folder, 'random'), 1_000, 1_001);
  utimesSync(join(folder, 'text'), 1_000_000_000.123, 1_000_000_000.123);
  setAttribute(join(folder, 'random'));
}

/** Each entry as one line, sorted: path, kind, mode, owner, size, time, links, content, attributes. */
export function fingerprintOf(folder: string): string[] {
  const lines: string[] = [];
  const walk = (path: string, name: string) => {
    const stats = lstatSync(path);
    const { mode, uid, gid, mtimeMs, nlink } = stats;
    const meta = [mode.toString(8), uid, gid, Math.floor(mtimeMs)];
    if (stats.isDirectory()) {
      lines.push([name, ...meta].join('|'));
      for (const entry of readdirSync(path)) walk(join(path, entry), join(name, entry));
    } else if (stats.isSymbolicLink()) {
      lines.push([name, mode.toString(8), uid, gid, readlinkSync(path)].join('|'));
    } else if (stats.isFile()) {
      const hash = createHash('sha256').update(readFileSync(path)).digest('hex');
      lines.push([name, ...meta, nlink, hash].join('|'));
    } else {
      lines.push([name, ...meta].join('|'));
    }
  };
  walk(folder, '.');
  return lines.toSorted();
}

/** What `setfattr` would do, without the package: Python is not everywhere either. */
export function setAttribute(path: string): void {
  try {
    execFileSync('setfattr', ['-n', 'user.podwright', '-v', 'kept', path], { stdio: 'ignore' });
  } catch {
    // No such program, or a file system without attributes.
  }
}

/** The attribute that `writeMixedTree` gave to `random`; null where it could not. */
export function attributeOf(folder: string): string | null {
  try {
    const args = ['--only-values', '-n', 'user.podwright', join(folder, 'random')];
    const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore'];
    return execFileSync('getfattr', args, { encoding: 'utf8', stdio });
  } catch {
    return null;
  }
}
