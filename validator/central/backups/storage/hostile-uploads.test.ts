/**
 * Files that a node with an `append` credential may send to make restic fail, on disk and in a bucket; the real restic
 * must work before and after them.
 */
import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { repositoryVariables } from '#shared/api/agent/operations.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { sha256, startBackupServer } from '../../../../test/fakes/external/backup-server.ts';
import { quickRepository } from '../../../../test/fakes/external/quick-repository.ts';
import { startS3Server } from '../../../../test/fakes/external/s3-server.ts';
import { createS3Bucket } from '../../platform/adapters/s3-bucket.ts';
import type { RepositoryPlace } from '../../platform/ports.ts';

const newKey = (): Buffer => quickRepository('another password')[0]?.content ?? Buffer.alloc(0);
const changed = (change: Record<string, unknown>) =>
  Buffer.from(JSON.stringify({ ...JSON.parse(newKey().toString()), ...change }));

async function openScene(place: 'disk' | 'bucket') {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-hostile-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const s3 = await startS3Server(systemClock.now);
  onTestFinished(s3.close);
  const bucket =
    place === 'disk' ? {} : { bucket: createS3Bucket({ ...s3.options, prefix: 'b/' }) };
  const server = await startBackupServer({ folder, ...bucket });
  onTestFinished(server.close);
  const ids = { id: randomUUID(), accountId: randomUUID() };
  const append = await server.storage.place(ids, 'append');
  const full = await server.storage.place(ids, 'full');
  const tree = join(folder, 'tree');
  mkdirSync(tree);

  return {
    append,
    full,
    tree,
    restored: join(folder, 'restored'),
    async restic(at: RepositoryPlace, ...args: string[]): Promise<string> {
      const { PATH = '' } = process.env;
      const env = { PATH, ...repositoryVariables(at), RESTIC_PASSWORD: 'correct horse battery' };
      const { stdout } = await promisify(execFile)('restic', ['--no-cache', ...args], { env });
      return stdout;
    },
    create: () => server.send('POST', '?create=true', { place: append }),
    async post(type: string, body: Buffer) {
      const path = type === 'config' ? type : `${type}/${sha256(body)}`;
      const { status, reason } = await server.send('POST', path, { place: append, body });
      return [status, reason];
    },
    async keys(): Promise<string[]> {
      const { body } = await server.send('GET', 'keys/', { place: append });
      return JSON.parse(body.toString());
    },
  };
}

const INVALID = [400, expect.stringMatching(/^RESTIC_FILE_INVALID: .*; write files with restic/)];
const SECOND = [403, expect.stringMatching(/^RESTIC_KEY_EXISTS: /)];

it.each(['disk', 'bucket'] as const)(
  'restores with restic after a node has sent files that restic cannot read (%s)',
  async (place) => {
    const scene = await openScene(place);
    const { append, full, tree, restored, restic, post } = scene;
    await restic(append, 'init');
    const content = randomBytes(1_000_000);
    writeFileSync(join(tree, 'file'), content);
    await restic(append, 'backup', tree);

    expect(await post('keys', Buffer.from('hello attack'))).toEqual(INVALID);
    expect(await post('keys', newKey())).toEqual(SECOND);
    for (const type of ['data', 'index', 'locks', 'snapshots']) {
      for (const bytes of [1, 12, 16, 32]) {
        expect([type, bytes, await post(type, randomBytes(bytes))]).toEqual([type, bytes, INVALID]);
      }
    }
    expect(await post('config', Buffer.from('attack'))).toEqual(INVALID);
    expect((await post('config', randomBytes(100)))[0]).toBe(403);
    expect(await scene.keys()).toHaveLength(1);

    await restic(append, 'restore', 'latest', '--target', restored);
    expect(readFileSync(join(restored, tree, 'file')).equals(content)).toBe(true);
    writeFileSync(join(tree, 'file'), randomBytes(1_000_000));
    await restic(append, 'backup', tree);
    expect(await restic(append, 'check', '--read-data')).toContain('no errors were found');
    await restic(full, 'forget', '--keep-last', '1', '--prune');
    expect(await restic(full, 'check')).toContain('no errors were found');
  },
);

it.each(['disk', 'bucket'] as const)(
  'lets restic init replace the key of an interrupted init, and no other key (%s)',
  async (place) => {
    const scene = await openScene(place);
    const { append, tree, restic, post } = scene;
    await scene.create();
    const left = newKey();
    expect((await post('keys', left))[0]).toBe(200);
    expect((await post('keys', left))[0]).toBe(200);
    expect(await scene.keys()).toEqual([sha256(left)]);
    const two = await Promise.all([post('keys', newKey()), post('keys', newKey())]);
    expect(two.every(([status]) => status === 200 || status === 403)).toBe(true);
    expect((await scene.keys()).length).toBeLessThanOrEqual(1);
    await restic(append, 'init');
    const [own] = await scene.keys();
    expect(await scene.keys()).toEqual([own]);
    expect(own).not.toBe(sha256(left));
    writeFileSync(join(tree, 'file'), 'content');
    await restic(append, 'backup', tree);
  },
);

it('accepts only keys in the format of restic with a bounded cost', async () => {
  const scene = await openScene('disk');
  await scene.create();
  const seal = Buffer.alloc(32).toString('base64');
  for (const body of [
    Buffer.from('null'),
    Buffer.from('{}'),
    Buffer.from('['.repeat(60_000)),
    changed({ kdf: 'argon2' }),
    changed({ N: 3 }),
    changed({ N: 2 ** 30, r: 8 }),
    changed({ p: 0 }),
    changed({ salt: '' }),
    changed({ salt: '!' }),
    changed({ data: seal }),
  ]) {
    expect([body.toString().slice(0, 99), await scene.post('keys', body)]).toEqual([
      body.toString().slice(0, 99),
      INVALID,
    ]);
  }
  expect((await scene.post('keys', changed({ hostname: 'x'.repeat(70_000) })))[0]).toBe(413);
  expect(await scene.keys()).toEqual([]);
  expect((await scene.post('keys', newKey()))[0]).toBe(200);
});
