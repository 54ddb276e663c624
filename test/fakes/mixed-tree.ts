/** A file tree with everything that a pod may store, and its fingerprint: content and metadata of every entry. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { attributeAt, writeWithAttribute } from './extended-attributes.ts';

const MIB = 1024 * 1024;
/** Sizes of the parts in MiB; their sum is the tree's size. */
export type TreeSize = { random: number; text: number; sparse: number; smallFiles: number };
const SMALL: TreeSize = { random: 12, text: 8, sparse: 12, smallFiles: 800 };
export const ONE_GIB: TreeSize = { random: 560, text: 280, sparse: 150, smallFiles: 8_000 };

const ODD_NAMES = [
  'with space',
  'neue\nzeile',
  '-dash',
  'ünïcödé',
  '*?[glob]',
  '"quoted"',
  '.hidden',
];
const ATTRIBUTE = { key: 'user.podwright', value: 'kept' };
const WITH_ATTRIBUTE = ['attributes', 'folder with attributes'];
const HASHED_BYTES = 4 * MIB;

/**
 * Writes random data, text, sparse and many small files, links, unusual names, modes, owners, times and attributes.
 * Needs root.
 */
export function writeMixedTree(folder: string, size: TreeSize = SMALL): void {
  mkdirSync(join(folder, 'small'), { recursive: true });
  writePieces(join(folder, 'random'), size.random, () => randomBytes(MIB));
  writePieces(join(folder, 'text'), size.text, textOf);
  writeFileSync(join(folder, 'sparse'), 'begin');
  truncateSync(join(folder, 'sparse'), size.sparse * MIB);
  for (let count = 0; count < size.smallFiles; count += 1) writeSmall(folder, count);
  for (const name of ODD_NAMES) writeFileSync(join(folder, name), name);
  mkdirSync(join(folder, 'empty folder'));
  // Cache tag (CACHEDIR.TAG) that makes some programs skip a folder.
  mkdirSync(join(folder, 'cache'));
  writeFileSync(join(folder, 'cache/CACHEDIR.TAG'), 'Signature: 8a477f597d28d172789f06886806bc55');
  for (const [name, mode] of [
    ['set-uid', 0o4711],
    ['nobody reads', 0o000],
  ] as const) {
    writeFileSync(join(folder, name), name);
    chmodSync(join(folder, name), mode);
  }
  chmodSync(join(folder, 'small'), 0o750);
  chmodSync(join(folder, 'empty folder'), 0o3777);
  linkSync(join(folder, 'text'), join(folder, 'hard link'));
  symlinkSync('text', join(folder, 'link'));
  symlinkSync('/etc/hostname', join(folder, 'link out'));
  symlinkSync('nowhere', join(folder, 'dangling'));
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  writeWithAttribute(folder, 'attributes', 'content', ATTRIBUTE);
  writeWithAttribute(folder, 'folder with attributes', null, ATTRIBUTE);
  chownSync(join(folder, 'random'), 1_000, 1_001);
  chownSync(join(folder, 'small'), 123_456, 654_321);
  touch(join(folder, 'text'), '2001-02-03 04:05:06.123456789');
  touch(join(folder, 'small'), '1970-01-01 00:00:01.000000001 UTC');
}

/** Changes about one percent: data inside a file and at its end, deleted and new files, and metadata only. */
export function changeMixedTree(folder: string, size: TreeSize = SMALL): void {
  const random = openSync(join(folder, 'random'), 'r+');
  for (let mib = 0; mib < size.random; mib += 100) {
    writeSync(random, randomBytes(MIB), 0, MIB, mib * MIB + 4_321);
  }
  closeSync(random);
  writeFileSync(join(folder, 'text'), 'one line more\n', { flag: 'a' });
  for (let count = 0; count < size.smallFiles; count += 200) {
    rmSync(join(folder, 'small', `${count}`));
    writeSmall(folder, size.smallFiles + count);
  }
  chmodSync(join(folder, 'set-uid'), 0o640);
  chownSync(join(folder, '-dash'), 7, 8);
  rmSync(join(folder, 'link'));
  symlinkSync('random', join(folder, 'link'));
}

/** One sorted line for each entry: path, kind, mode, owner, time in nanoseconds, links, content, attributes. */
export function fingerprintOf(folder: string): string[] {
  const lines: string[] = [];
  const firstOf = new Map<bigint, string>();
  const walk = (path: string, name: string) => {
    const stats = lstatSync(path, { bigint: true });
    const { mode, uid, gid, mtimeNs, ino } = stats;
    const owned = [name, mode.toString(8), uid, gid];
    if (stats.isDirectory()) {
      lines.push([...owned, mtimeNs].join('|'));
      for (const entry of readdirSync(path).toSorted()) walk(join(path, entry), join(name, entry));
    } else if (stats.isSymbolicLink()) {
      lines.push([...owned, readlinkSync(path)].join('|'));
    } else if (stats.isFile()) {
      if (!firstOf.has(ino)) firstOf.set(ino, name);
      const twin = firstOf.get(ino) ?? '';
      lines.push([...owned, mtimeNs, twin, hashOf(path)].join('|'));
    } else {
      lines.push([...owned, mtimeNs].join('|'));
    }
  };
  walk(folder, '.');
  for (const name of WITH_ATTRIBUTE) {
    if (!readdirSync(folder).includes(name)) continue;
    lines.push(`${name}: ${attributeAt(join(folder, name), ATTRIBUTE.key)}`);
  }
  return lines.toSorted();
}

/** Bytes that the file occupies on disk, fewer than its size if it is sparse. */
export function allocatedBytes(path: string): number {
  return lstatSync(path).blocks * 512;
}

function hashOf(path: string): string {
  const hash = createHash('sha256');
  const file = openSync(path, 'r');
  const bytes = Buffer.allocUnsafe(HASHED_BYTES);
  for (let read = -1; read !== 0; ) {
    read = readSync(file, bytes);
    hash.update(bytes.subarray(0, read));
  }
  closeSync(file);
  return hash.digest('hex');
}

function writePieces(path: string, mib: number, piece: (index: number) => string | Buffer): void {
  const file = openSync(path, 'w');
  for (let index = 0; index < mib; index += 1) {
    const bytes = piece(index);
    if (typeof bytes === 'string') writeSync(file, bytes);
    else writeSync(file, bytes);
  }
  closeSync(file);
}

/** Returns text that compresses well and repeats no passage. */
function textOf(index: number): string {
  const line = (at: number) => `${index}.${at} the agent said what it had seen, and went on\n`;
  const { length } = line(10_000);
  return Array.from({ length: Math.floor(MIB / length) }, (_, at) => line(at)).join('');
}

function writeSmall(folder: string, count: number): void {
  writeFileSync(join(folder, 'small', `${count}`), `small ${count}\n`.repeat(1 + (count % 300)));
}

function touch(path: string, time: string): void {
  execFileSync('touch', ['-d', time, path], { cwd: dirname(path) });
}
