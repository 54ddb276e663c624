import { link, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { measureTree } from './staged-tree.ts';

const BYTE_NAME = Buffer.from([0x62, 0xff, 0xe9]);

test('counts files with names that are not UTF-8, and each hard-linked file once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'staged-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const inner = Buffer.concat([Buffer.from(`${folder}/`), BYTE_NAME]);
  await mkdir(inner);
  await writeFile(Buffer.concat([inner, Buffer.from('/'), BYTE_NAME]), 'three');
  await writeFile(join(folder, 'größe\n'), 'four');
  await link(join(folder, 'größe\n'), join(folder, 'again'));
  await symlink('/etc', join(folder, 'out'));

  const found = await measureTree(folder, new AbortController().signal);

  expect(found).toEqual({ entries: 5, bytes: 9, removedDevices: 0, sparse: [] });
});
