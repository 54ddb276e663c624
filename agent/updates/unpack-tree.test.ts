import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Header, pack } from 'tar-stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { unpackTree } from './unpack-tree.ts';

let home: string;
let folder: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'podwright-unpack-'));
  folder = join(home, 'release');
  mkdirSync(folder);
});
afterEach(() => rmSync(home, { recursive: true }));

type Entry = Partial<Header> & { name: string };
const SOUND: readonly Entry[] = [
  { name: 'podwright/', type: 'directory' },
  { name: 'podwright/bin/', type: 'directory' },
];

/** Yields an archive as the engine sends it: all entries are below one folder. */
async function* archiveOf(entries: readonly Entry[]): AsyncGenerator<Uint8Array> {
  const tar = pack();
  for (const entry of entries) tar.entry(entry, entry.type === undefined ? 'text' : '');
  tar.finalize();
  for await (const chunk of tar) if (chunk instanceof Uint8Array) yield chunk;
}

it('creates files, folders and links, readable by all and without special rights', async () => {
  await unpackTree(
    archiveOf([
      ...SOUND,
      { name: 'podwright/bin/run', mode: 0o4711, uid: 1000 },
      { name: 'podwright/package.json', mode: 0o600 },
      { name: 'podwright/bin/link', type: 'symlink', linkname: '../package.json' },
    ]),
    folder,
  );
  const modeOf = (path: string) => (statSync(join(folder, path)).mode & 0o7777).toString(8);
  expect([modeOf('bin'), modeOf('bin/run'), modeOf('package.json')]).toEqual(['755', '755', '644']);
  expect(readFileSync(join(folder, 'bin/run'), 'utf8')).toBe('text');
  expect(readlinkSync(join(folder, 'bin/link'))).toBe('../package.json');
});

it.each([
  ['a path that leads outside', [{ name: 'podwright/../out' }]],
  ['a top-level folder that leads outside', [{ name: '../out' }]],
  ['an absolute path', [{ name: '/podwright/out' }]],
  ['a relative link out', [{ name: 'podwright/bin/a', type: 'symlink', linkname: '../../out' }]],
  ['an absolute link', [{ name: 'podwright/a', type: 'symlink', linkname: '/etc/passwd' }]],
  [
    'a link that goes down and then up',
    [{ name: 'podwright/a', type: 'symlink', linkname: 'bin/../../out' }],
  ],
  [
    'a file through a link',
    [{ name: 'podwright/a', type: 'symlink', linkname: 'bin' }, { name: 'podwright/a/out' }],
  ],
  ['two files at one path', [{ name: 'podwright/bin/a' }, { name: 'podwright/bin/a' }]],
  ['a hard link', [{ name: 'podwright/a', type: 'link', linkname: '/etc/passwd' }]],
  ['a device', [{ name: 'podwright/a', type: 'block-device' }]],
  ['a pipe', [{ name: 'podwright/a', type: 'fifo' }]],
] as [string, Entry[]][])('rejects %s', async (_, entries) => {
  await expect(unpackTree(archiveOf([...SOUND, ...entries]), folder)).rejects.toThrow();
  expect(existsSync(join(home, 'out'))).toBe(false);
});

it('rejects an archive that ends early or cannot be read', async () => {
  const whole = await Array.fromAsync(archiveOf([...SOUND, { name: 'podwright/a' }]));
  const half = Buffer.concat(whole).subarray(0, 1_540);
  const broken = async function* () {
    yield half;
    throw new Error('the engine went away');
  };
  await expect(unpackTree(broken(), folder)).rejects.toThrow('the engine went away');
  rmSync(folder, { recursive: true });
  mkdirSync(folder);
  const early = async function* () {
    yield half;
  };
  await expect(unpackTree(early(), folder)).rejects.toThrow(/unexpected end/i);
});
