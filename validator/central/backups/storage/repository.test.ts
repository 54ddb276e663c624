/** restic's REST protocol over HTTP: answers, rights, files on disk. */
import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../../../test/fakes/eventually.ts';
import {
  type BackupServer,
  type RestRequest,
  sha256,
  startBackupServer,
  userOf,
} from '../../../../test/fakes/external/backup-server.ts';
import { quickRepository } from '../../../../test/fakes/external/quick-repository.ts';
import type { RepositoryPlace } from '../../platform/ports.ts';

const PACK = Buffer.alloc(100_000, 'pack');
const NAME = sha256(PACK);
const GIB = 1024 ** 3;
/** Configuration that restic could have written. */
const CONFIG = Buffer.alloc(100, 'settings');
/** Returns a key in restic's format. */
const newKey = (): Buffer => quickRepository('password')[0]?.content ?? Buffer.alloc(0);

let folder: string;
let server: BackupServer;
let accountId: string;
let id: string;
let append: RepositoryPlace;
let full: RepositoryPlace;

async function open(options: Omit<Parameters<typeof startBackupServer>[0], 'folder'> = {}) {
  server = await startBackupServer({ folder, ...options });
  append = await server.storage.place({ id, accountId }, 'append');
  full = await server.storage.place({ id, accountId }, 'full');
}

async function reopen(options: Parameters<typeof open>[0]) {
  await server.close();
  await open(options);
}

const send = (method: string, path: string, sent: Partial<RestRequest> = {}) =>
  server.send(method, path, { place: append, ...sent });
const statusOf = async (...args: Parameters<typeof send>) => (await send(...args)).status;
const inFolder = (...path: string[]) => join(folder, id, ...path);

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-backups-'));
  [accountId, id] = [randomUUID(), randomUUID()];
  await open();
  expect((await send('POST', '?create=true')).status).toBe(200);
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

it('stores, lists, serves in parts and returns the size of objects of every type', async () => {
  for (const type of ['data', 'index', 'keys', 'locks', 'snapshots']) {
    const body = type === 'keys' ? newKey() : PACK;
    const name = sha256(body);
    expect((await send('GET', `${type}/`)).body.toString()).toBe('[]');
    expect(await statusOf('GET', `${type}/${name}`)).toBe(404);
    expect(await statusOf('HEAD', `${type}/${name}`)).toBe(404);
    expect(await statusOf('POST', `${type}/${name}`, { body })).toBe(200);
    const head = await send('HEAD', `${type}/${name}`);
    expect([head.status, head.headers['content-length'], head.body.length]).toEqual([
      200,
      String(body.length),
      0,
    ]);
    const whole = await send('GET', `${type}/${name}`);
    expect([whole.status, whole.body.equals(body)]).toEqual([200, true]);
    const v1 = await send('GET', `${type}/`);
    expect([v1.headers['content-type'], JSON.parse(v1.body.toString())]).toEqual([
      'application/vnd.x.restic.rest.v1',
      [name],
    ]);
    const v2 = await send('GET', `${type}/`, {
      headers: { accept: 'application/vnd.x.restic.rest.v2' },
    });
    expect([v2.headers['content-type'], JSON.parse(v2.body.toString())]).toEqual([
      'application/vnd.x.restic.rest.v2',
      [{ name, size: body.length }],
    ]);
    expect(await statusOf('DELETE', `${type}/${name}`, { place: full })).toBe(200);
    expect(await statusOf('GET', `${type}/${name}`)).toBe(404);
    expect(await statusOf('DELETE', `${type}/${name}`, { place: full }), 'a repeat').toBe(200);
  }
});

it('serves parts of an object, and the whole object for unsupported ranges', async () => {
  await send('POST', `data/${NAME}`, { body: PACK });
  for (const [range, status, start, end] of [
    ['bytes=0-9', 206, 0, 10],
    ['bytes=99990-', 206, 99_990, 100_000],
    ['bytes=99990-200000', 206, 99_990, 100_000],
    ['bytes=9-0', 200, 0, 100_000],
    ['bytes=0-1,5-6', 200, 0, 100_000],
    ['lines=0-1', 200, 0, 100_000],
  ] as const) {
    const answer = await send('GET', `data/${NAME}`, { headers: { range } });
    expect([range, answer.status, answer.headers['content-range']]).toEqual([
      ...[range, status],
      status === 206 ? `bytes ${start}-${end - 1}/100000` : undefined,
    ]);
    expect(answer.body.equals(PACK.subarray(start, end))).toBe(true);
  }
  expect(await statusOf('GET', `data/${NAME}`, { headers: { range: 'bytes=100000-' } })).toBe(416);
});

it('uses restic’s layout on disk with private permissions', async () => {
  await send('POST', `data/${NAME}`, { body: PACK });
  await send('POST', 'config', { body: CONFIG });
  expect(statSync(inFolder('data', NAME.slice(0, 2), NAME)).mode & 0o777).toBe(0o600);
  expect(statSync(inFolder('config')).mode & 0o777).toBe(0o600);
  for (const path of [[], ['data'], ['data', NAME.slice(0, 2)], ['keys']]) {
    expect(statSync(inFolder(...path)).mode & 0o777).toBe(0o700);
  }
  expect(readdirSync(inFolder('arriving'))).toEqual([]);
  expect(await server.storage.bytesOf(id)).toBe(25 * 4_096 + 4_096);
});

it('accepts only content whose hash is its name, overwrites nothing and accepts repeated requests', async () => {
  const wrong = await send('POST', `data/${sha256(Buffer.from('x'))}`, { body: PACK });
  expect([wrong.status, wrong.reason]).toEqual([400, expect.stringMatching(/hash/)]);
  expect(wrong.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  expect(readdirSync(inFolder('arriving'))).toEqual([]);
  expect(await server.storage.bytesOf(id)).toBe(0);
  // restic repeats the request after a lost answer.
  for (const _ of [1, 2]) expect(await statusOf('POST', `data/${NAME}`, { body: PACK })).toBe(200);
  writeFileSync(inFolder('data', NAME.slice(0, 2), NAME), 'damaged');
  expect(await statusOf('POST', `data/${NAME}`, { body: PACK })).toBe(403);

  expect([await statusOf('HEAD', 'config'), await statusOf('GET', 'config')]).toEqual([404, 404]);
  for (const _ of [1, 2]) expect(await statusOf('POST', 'config', { body: CONFIG })).toBe(200);
  expect(await statusOf('POST', 'config', { body: Buffer.alloc(100, 'others') })).toBe(403);
  expect((await send('GET', 'config')).body.equals(CONFIG)).toBe(true);
  expect(await statusOf('POST', 'config', { body: PACK })).toBe(413);
});

it('allows `append` credentials to remove only locks', async () => {
  await send('POST', 'config', { body: CONFIG });
  for (const type of ['data', 'index', 'keys', 'snapshots', 'locks']) {
    const body = type === 'keys' ? newKey() : PACK;
    expect(await statusOf('POST', `${type}/${sha256(body)}`, { body })).toBe(200);
    const status = await statusOf('DELETE', `${type}/${sha256(body)}`);
    expect([type, status]).toEqual([type, type === 'locks' ? 200 : 403]);
  }
  expect(await statusOf('DELETE', 'config')).toBe(403);
  expect(await statusOf('DELETE', 'config', { place: full })).toBe(200);
});

it('rejects credentials of other repositories, accounts and rights', async () => {
  await send('POST', `data/${NAME}`, { body: PACK });
  const other = await server.storage.place({ id: randomUUID(), accountId }, 'full');
  const stranger = await server.storage.place({ id, accountId: randomUUID() }, 'append');
  const [user = '', password = ''] = userOf(append).split(':');
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
  const headers = [
    {},
    { authorization: basic(userOf(other)) },
    { authorization: basic(`${user}:${password}x`) },
    { authorization: basic(`${user.replace('append', 'full')}:${password}`) },
    { authorization: basic(`${user.replace(accountId, randomUUID())}:${password}`) },
    { authorization: basic(user) },
    { authorization: 'Basic !' },
    { authorization: `Bearer ${password}` },
  ];
  for (const sent of headers) {
    const answer = await server.send('GET', `/restic/${id}/data/${NAME}`, {
      place: null,
      headers: sent,
    });
    expect([sent, answer.status]).toEqual([sent, 401]);
    expect(answer.headers['www-authenticate']).toMatch(/^Basic/);
    expect(answer.body.toString()).toMatch(/^[ -~]+\n$/);
  }
  // The storage accepts credentials of another account for the same id; the issuer of credentials must not create them.
  expect(await server.send('GET', `/restic/${id}/`, { place: stranger })).toMatchObject({
    status: 404,
  });
});

it('rejects paths outside the protocol', async () => {
  await send('POST', 'config', { body: CONFIG });
  for (const path of [
    'data/../config',
    'data/..%2f..%2fowner',
    `data/${'A'.repeat(64)}`,
    `data/${NAME}x`,
    `data/${NAME.slice(0, 2)}/${NAME}`,
    `data/${'%2e%2e%2f'.repeat(3)}`,
    `data//${NAME}`,
    '../owner',
    'owner',
    'arriving/',
    `other/${NAME}`,
    'config/x',
    '',
  ]) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const status = await statusOf(method, path, { place: full, body: PACK });
      expect([method, path, status]).toEqual([method, path, 404]);
    }
  }
  for (const name of ['..', '../restic', 'removed', '..%2f', '%00', id.toUpperCase()]) {
    const path = `/restic/${name}/config`;
    expect([path, await statusOf('GET', path, { place: full })]).toEqual([path, 401]);
  }
  expect(await server.storage.bytesOf(id)).toBe(4_096);
  for (const name of ['..', id.toUpperCase(), '']) {
    await expect(server.storage.remove(name)).rejects.toThrow(RangeError);
    await expect(server.storage.bytesOf(name)).rejects.toThrow(RangeError);
    await expect(server.storage.place({ id: name, accountId }, 'full')).rejects.toThrow(RangeError);
  }
});

it('applies the quota to all repositories of an account and frees removed bytes', async () => {
  await reopen({ bytesPerAccount: 250_000 });
  const second = await server.storage.place({ id: randomUUID(), accountId }, 'append');
  await send('POST', '?create=true', { place: second });
  const packs = [1, 2, 3].map((fill) => Buffer.alloc(100_000, fill));
  const put = (pack: Buffer, place = append) =>
    send('POST', `data/${sha256(pack)}`, { body: pack, place });
  const [a = PACK, b = PACK, c = PACK] = packs;
  expect((await put(a)).status).toBe(200);
  expect((await put(b, second)).status).toBe(200);
  const refused = await put(c);
  expect([refused.status, refused.reason]).toEqual([
    507,
    expect.stringMatching(/250000 bytes .* used up/),
  ]);
  // Also without a Content-Length.
  const unstated = await send('POST', `data/${sha256(c)}`, { body: c, stated: false });
  expect(unstated.status).toBe(507);
  expect(readdirSync(inFolder('arriving'))).toEqual([]);
  expect((await put(a)).status).toBe(507);
  expect(await statusOf('DELETE', `data/${sha256(a)}`, { place: full })).toBe(200);
  expect((await put(c)).status).toBe(200);
  await server.storage.remove(id);
  expect((await put(a, second)).status).toBe(200);
});

it('counts files that an earlier process stored', async () => {
  await send('POST', `data/${NAME}`, { body: PACK });
  await reopen({ bytesPerAccount: 150_000 });
  const more = Buffer.alloc(100_000, 'more');
  expect(await statusOf('POST', `data/${sha256(more)}`, { body: more })).toBe(507);
});

it('keeps the reserve of the disk free and refuses files above the maximum size', async () => {
  let freeBytes = 6 * GIB;
  await reopen({ spaceOf: async () => ({ freeBytes, totalBytes: 100 * GIB }) });
  expect(await statusOf('POST', `data/${NAME}`, { body: PACK })).toBe(200);
  freeBytes = 5 * GIB + 1_000;
  const other = Buffer.alloc(100_000, 1);
  const answer = await send('POST', `data/${sha256(other)}`, { body: other });
  expect([answer.status, answer.reason]).toEqual([507, 'The disk for backups is full']);
  const stated = { 'content-length': String(GIB) };
  const huge = await new Promise<number>((resolve, reject) => {
    const { host, pathname } = new URL(append.location.slice(5));
    const [hostname, port] = host.split(':');
    const sent = request(
      {
        hostname,
        port,
        path: `${pathname}data/${NAME}`,
        method: 'POST',
        headers: stated,
        auth: userOf(append),
      },
      (response) => {
        resolve(response.statusCode ?? 0);
        sent.destroy();
      },
    );
    sent.on('error', reject);
    sent.flushHeaders();
  });
  expect(huge).toBe(413);
});

it('removes a repository permanently and rejects later uploads to it', async () => {
  await send('POST', `data/${NAME}`, { body: PACK });
  await server.storage.remove(id);
  await server.storage.remove(id);
  await server.storage.remove(randomUUID());
  expect(existsSync(inFolder())).toBe(false);
  expect(await server.storage.bytesOf(id)).toBe(0);
  // Credentials of the removed repository, which a node may still have.
  for (const [method, path] of [
    ['POST', '?create=true'],
    ['POST', `data/${NAME}`],
    ['GET', `data/${NAME}`],
    ['GET', 'data/'],
  ] as const) {
    expect([path, await statusOf(method, path, { body: PACK })]).toEqual([path, 404]);
  }
});

/** Starts an upload that sends half of its content. */
function startUpload() {
  const { hostname, port, pathname } = new URL(append.location.slice(5));
  const sent = request({
    hostname,
    port,
    path: `${pathname}data/${NAME}`,
    method: 'POST',
    auth: userOf(append),
    headers: { 'content-length': PACK.length },
  });
  const ended = new Promise<string>((resolve) => {
    sent.on('response', (response) => resolve(String(response.statusCode)));
    sent.on('error', () => resolve('cut'));
  });
  sent.write(PACK.subarray(0, PACK.length / 2));
  return { sent, ended, rest: PACK.subarray(PACK.length / 2) };
}
const arriving = () => readdirSync(inFolder('arriving'));

it('lets a slow upload exceed the time-out of requests', async () => {
  const { sent, ended, rest } = startUpload();
  await eventually('the time-out passed', () => server.lateRequests() === 1);
  sent.end(rest);
  expect(await ended).toBe('200');
  expect((await send('GET', `data/${NAME}`)).body.equals(PACK)).toBe(true);
});

const LIMITS = { perRepository: 2, total: 3, stallMs: 60_000, longestMs: 60_000 };

it.each([
  ['stalls', { ...LIMITS, stallMs: 300 }],
  ['takes too long', { ...LIMITS, longestMs: 300 }],
])('aborts an upload that %s and deletes its content', async (_, limits) => {
  await reopen({ limits });
  const { ended } = startUpload();
  expect(await ended).toBe('cut');
  await eventually('nothing left', () => arriving().length === 0);
});

it('closes open transfers when the storage stops', async () => {
  const { ended } = startUpload();
  await eventually('half of the upload', () => arriving().length === 1);
  await server.close();
  expect(await ended).toBe('cut');
  await eventually('nothing left', () => arriving().length === 0);
  await open();
});

it('limits concurrent transfers', async () => {
  await reopen({ limits: LIMITS });
  const uploads = [startUpload(), startUpload()];
  await eventually('both uploads', () => arriving().length === 2);
  const busy = await send('GET', 'data/');
  expect([busy.status, busy.headers['retry-after']]).toEqual([503, '1']);
  const other = await server.storage.place({ id: randomUUID(), accountId }, 'append');
  expect(await statusOf('POST', '?create=true', { place: other })).toBe(200);
  for (const { sent } of uploads) sent.destroy();
  await eventually('free again', async () => (await statusOf('GET', 'data/')) === 200);
});

it('removes interrupted uploads at the start', async () => {
  const away = randomUUID();
  const removed = join(folder, 'removed', away, 'content', 'data');
  mkdirSync(removed, { recursive: true });
  writeFileSync(inFolder('arriving', 'half'), 'half');
  await reopen({});
  expect([arriving(), existsSync(removed)]).toEqual([[], false]);
});

it('removes abandoned uploads every hour and counts accounts again', async () => {
  await reopen({ bytesPerAccount: 150_000 });
  expect(await statusOf('POST', `data/${NAME}`, { body: PACK })).toBe(200);
  writeFileSync(inFolder('arriving', 'old'), 'old');
  utimesSync(inFolder('arriving', 'old'), 1_000, 1_000);
  writeFileSync(inFolder('arriving', 'new'), 'new');
  // Simulates another process that removes a file from the same folder.
  rmSync(inFolder('data', NAME.slice(0, 2), NAME));
  const other = Buffer.alloc(100_000, 1);
  expect(await statusOf('POST', `data/${sha256(other)}`, { body: other })).toBe(507);
  expect((await server.fill()).bytes).toBeNull();
  const jobs = server.startJobs();
  await eventually('swept', () => arriving().length === 1);
  const fill = await eventually('a count', async () => {
    const now = await server.fill();
    return now.bytes !== null && now;
  });
  await jobs.stop();
  expect(arriving()).toEqual(['new']);
  expect(fill.bytes).toBe(await server.storage.bytesOf(id));
  expect(fill.totalBytes).toBeGreaterThan(fill.freeBytes);
  expect(await statusOf('POST', `data/${sha256(other)}`, { body: other })).toBe(200);
});
