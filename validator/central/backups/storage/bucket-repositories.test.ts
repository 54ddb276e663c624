/** Repositories in a bucket: rights and quotas of each account, removals, and the real restic. */
import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { repositoryVariables } from '#shared/api/agent/operations.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import {
  type BackupServer,
  type RestRequest,
  sha256,
  startBackupServer,
} from '../../../../test/fakes/external/backup-server.ts';
import { type S3Server, startS3Server } from '../../../../test/fakes/external/s3-server.ts';
import { createS3Bucket } from '../../platform/adapters/s3-bucket.ts';
import type { RepositoryPlace } from '../../platform/ports.ts';

const PACK = Buffer.alloc(100_000, 'pack');
const NAME = sha256(PACK);
const OTHER = Buffer.alloc(60_000, 'other');
const PREFIX = '/uploads/backups/';

let folder: string;
let s3: S3Server;
let server: BackupServer;
let [accountId, id] = ['', ''];
let append: RepositoryPlace;
let full: RepositoryPlace;

async function open(bytesPerAccount = 1024 ** 3) {
  const bucket = createS3Bucket({ ...s3.options, prefix: 'backups/' });
  server = await startBackupServer({ folder, bucket, bytesPerAccount });
  append = await server.storage.place({ id, accountId }, 'append');
  full = await server.storage.place({ id, accountId }, 'full');
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-bucket-'));
  s3 = await startS3Server(systemClock.now);
  [accountId, id] = [randomUUID(), randomUUID()];
  await open();
});
afterEach(async () => {
  await server.close();
  await s3.close();
  rmSync(folder, { recursive: true, force: true });
});

const send = (method: string, path: string, sent: Partial<RestRequest> = {}) =>
  server.send(method, path, { place: append, ...sent });
const statusOf = async (...args: Parameters<typeof send>) => (await send(...args)).status;
const keys = () => [...s3.objects.keys()].map((key) => key.slice(PREFIX.length)).toSorted();
const create = (place = append) => statusOf('POST', '?create=true', { place });
const objectPath = `data/${NAME}`;

it('stores, lists, serves in parts and removes objects with the names that restic uses', async () => {
  expect(await create()).toBe(200);
  for (let at = 0; at < 5; at += 1) {
    const body = Buffer.alloc(100, String(at));
    expect(await statusOf('POST', `locks/${sha256(body)}`, { body })).toBe(200);
  }
  expect(await statusOf('POST', objectPath, { body: PACK })).toBe(200);
  expect(keys()).toContain(`${id}/data/${NAME.slice(0, 2)}/${NAME}`);
  expect(JSON.parse((await send('GET', 'locks/')).body.toString())).toHaveLength(5);
  const v2 = { headers: { accept: 'application/vnd.x.restic.rest.v2' } };
  expect(JSON.parse((await send('GET', 'data/', v2)).body.toString())).toEqual([
    { name: NAME, size: PACK.length },
  ]);
  const part = await send('GET', objectPath, { headers: { range: 'bytes=10-19' } });
  expect([part.status, part.headers['content-range'], part.body.length]).toEqual([
    206,
    'bytes 10-19/100000',
    10,
  ]);
  expect(await statusOf('GET', objectPath, { headers: { range: 'bytes=100000-' } })).toBe(416);
  expect((await send('HEAD', objectPath)).headers['content-length']).toBe('100000');
  expect((await send('GET', objectPath)).body.equals(PACK)).toBe(true);
  expect(await statusOf('GET', `data/${sha256(OTHER)}`)).toBe(404);
  expect(await statusOf('DELETE', objectPath, { place: full })).toBe(200);
  expect(await statusOf('DELETE', objectPath, { place: full }), 'a repeat').toBe(200);
  expect(await statusOf('GET', objectPath)).toBe(404);
});

it('accepts a repeat, rejects other content, and overwrites nothing', async () => {
  await create();
  const config = (text: string) => statusOf('POST', 'config', { body: Buffer.alloc(40, text) });
  expect([await config('mine'), await config('mine'), await config('yours')]).toEqual([
    200, 200, 403,
  ]);
  expect((await send('GET', 'config')).body.toString()).toBe('mine'.repeat(10));
  expect(await statusOf('POST', objectPath, { body: OTHER })).toBe(400);
  expect(await statusOf('POST', objectPath, { body: PACK })).toBe(200);
  expect(await statusOf('POST', objectPath, { body: PACK })).toBe(200);
  expect(readdirSync(folder)).toEqual([]);
});

it('gives a node no credential of the bucket, and no access to another account', async () => {
  await create();
  await statusOf('POST', objectPath, { body: PACK });
  const text = JSON.stringify([append, full]);
  const { accessKeyId, secretAccessKey } = s3.options.credentials;
  expect([accessKeyId, secretAccessKey, 's3:'].filter((each) => text.includes(each))).toEqual([]);

  const stranger = await server.storage.place(
    { id: randomUUID(), accountId: randomUUID() },
    'full',
  );
  expect(await create(stranger)).toBe(200);
  const path = new URL(append.location.slice('rest:'.length)).pathname;
  for (const [method, below] of [
    ['GET', objectPath],
    ['HEAD', objectPath],
    ['GET', 'data/'],
    ['DELETE', objectPath],
    ['POST', 'config'],
  ] as const) {
    const sent = { place: stranger, body: OTHER };
    expect([below, await statusOf(method, path + below, sent)]).toEqual([below, 401]);
  }
  const above = `${new URL(stranger.location.slice('rest:'.length)).pathname}../${id}/${objectPath}`;
  expect(await statusOf('GET', above, { place: stranger })).toBeGreaterThanOrEqual(401);
  expect((await send('GET', objectPath)).body.equals(PACK)).toBe(true);
});

it('lets a node with append rights remove only locks', async () => {
  await create();
  for (const type of ['data', 'snapshots', 'locks']) {
    await statusOf('POST', `${type}/${NAME}`, { body: PACK });
    const expected = type === 'locks' ? 200 : 403;
    expect(await statusOf('DELETE', `${type}/${NAME}`)).toBe(expected);
  }
});

it('limits the bytes of an account in all its repositories, also after a restart', async () => {
  await server.close();
  await open(150_000);
  await create();
  expect(await statusOf('POST', objectPath, { body: PACK })).toBe(200);
  const second = await server.storage.place({ id: randomUUID(), accountId }, 'append');
  const stranger = await server.storage.place(
    { id: randomUUID(), accountId: randomUUID() },
    'append',
  );
  const write = (place: RepositoryPlace) =>
    statusOf('POST', `data/${sha256(OTHER)}`, { place, body: OTHER });
  expect([await write(second), await write(stranger)]).toEqual([507, 200]);
  await server.close();
  await open(150_000);
  const again = { place: await server.storage.place({ id: randomUUID(), accountId }, 'append') };
  expect(await statusOf('POST', `data/${sha256(OTHER)}`, { ...again, body: OTHER })).toBe(507);
  expect(await server.storage.bytesOf(id)).toBe(102_400);
  expect(await statusOf('DELETE', objectPath, { place: full })).toBe(200);
  expect(await statusOf('POST', `data/${sha256(OTHER)}`, { ...again, body: OTHER })).toBe(200);
});

it('removes a repository for ever, and completes a removal that was interrupted', async () => {
  await create();
  await statusOf('POST', objectPath, { body: PACK });
  await server.storage.remove(id);
  expect(keys()).toEqual([`accounts/${accountId}/${id}`, `removed/${id}`]);
  expect([await create(), await statusOf('POST', objectPath, { body: PACK })]).toEqual([404, 404]);
  expect(await statusOf('GET', 'data/')).toBe(404);
  await server.storage.remove(id);

  const other = randomUUID();
  for (const key of [`${other}/config`, `removing/${other}`]) {
    s3.objects.set(PREFIX + key, { body: Buffer.from('x'), type: '' });
  }
  writeFileSync(join(folder, randomUUID()), 'left by a kill');
  await server.close();
  await open();
  expect(keys().filter((key) => key.includes(other))).toEqual([`removed/${other}`]);
  expect(readdirSync(folder)).toEqual([]);
});

it('answers 5xx while the bucket does not respond, and stores nothing', async () => {
  await create();
  const { objects } = s3;
  await s3.close();
  const before = objects.size;
  expect(await statusOf('POST', objectPath, { body: PACK })).toBeGreaterThanOrEqual(500);
  expect(objects.size).toBe(before);
  expect(readdirSync(folder)).toEqual([]);
});

it('serves the real restic: backup, check, restore and prune', async () => {
  const tree = join(folder, 'tree');
  mkdirSync(tree);
  writeFileSync(join(tree, 'file'), randomBytes(3_000_000));
  const restic = async (place: RepositoryPlace, ...args: string[]) => {
    const { PATH = '' } = process.env;
    const env = { PATH, ...repositoryVariables(place), RESTIC_PASSWORD: 'correct horse battery' };
    const { stdout } = await promisify(execFile)('restic', ['--no-cache', ...args], { env });
    return stdout;
  };
  await restic(append, 'init');
  await restic(append, 'backup', tree);
  writeFileSync(join(tree, 'file'), randomBytes(2_000_000));
  await restic(append, 'backup', tree);
  expect(await restic(append, 'check', '--read-data')).toContain('no errors were found');
  const restored = join(folder, 'restored');
  await restic(append, 'restore', 'latest', '--target', restored);
  const file = join(restored, tree, 'file');
  expect(readFileSync(file).equals(readFileSync(join(tree, 'file')))).toBe(true);
  const before = await server.storage.bytesOf(id);
  await restic(full, 'forget', '--keep-last', '1', '--prune');
  expect(await server.storage.bytesOf(id)).toBeLessThan((before ?? 0) - 2_000_000);
});
