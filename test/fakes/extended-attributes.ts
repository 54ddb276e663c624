/**
 * Reads and writes extended attributes with GNU tar, which every Debian system has; attr's own programs are rarely
 * installed.
 */
import { execFileSync } from 'node:child_process';
import { basename, dirname } from 'node:path';

const BLOCK = 512;
const HEADER = { mode: 100, size: 124, mtime: 136, checksum: 148, type: 156, magic: 257 };

/** Creates a file with `content`, or a folder when `content` is null, with one attribute. */
export function writeWithAttribute(
  folder: string,
  name: string,
  content: string | null,
  { key, value }: { key: string; value: string },
): void {
  const record = recordOf(`SCHILY.xattr.${key}=${value}\n`);
  const type = content === null ? '5' : '0';
  const archive = Buffer.concat([
    ...[header('pax', 'x', record.length), padded(record)],
    ...[header(name, type, content?.length ?? 0), padded(content ?? '')],
    Buffer.alloc(2 * BLOCK),
  ]);
  execFileSync('tar', ['--extract', '--xattrs', '--xattrs-include=*', '--file=-', '-C', folder], {
    input: archive,
  });
}

/** Attribute of `path` as tar reports it; null without one. */
export function attributeAt(path: string, key: string): string | null {
  const options = ['--create', '--xattrs', '--format=pax', '--no-recursion', '--file=-'];
  const archive = execFileSync('tar', [...options, '-C', dirname(path), `./${basename(path)}`], {
    encoding: 'latin1',
    maxBuffer: 1024 * 1024,
  });
  return new RegExp(`SCHILY\\.xattr\\.${key}=([^\\n]*)\\n`).exec(archive)?.[1] ?? null;
}

/** Encodes a pax record. Its length field includes the field itself. */
function recordOf(text: string): string {
  const length = (digits: number) => digits + 1 + text.length;
  const digits = String(length(2)).length;
  return `${length(digits)} ${text}`;
}

function header(name: string, type: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(name, 0);
  block.write('0000755\0', HEADER.mode);
  block.write(size.toString(8).padStart(11, '0'), HEADER.size);
  block.write('00000000000', HEADER.mtime);
  block.write(type, HEADER.type);
  block.write('ustar\x0000', HEADER.magic);
  block.write(' '.repeat(8), HEADER.checksum);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, HEADER.checksum);
  return block;
}

function padded(text: string): Buffer {
  const bytes = Buffer.alloc(Math.ceil(text.length / BLOCK) * BLOCK);
  bytes.write(text);
  return bytes;
}
