import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';

const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(3_000, 7)]);
const AVATAR = {
  file_name: 'me.png',
  content_type: 'image/png',
  size_bytes: PNG.length,
  purpose: 'avatar',
};

let folder: string;
let central: TestCentral;
let account: TestAccount;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-objects-'));
  central = await createTestCentral({ objects: { folder } });
  account = await central.signUp();
});
afterEach(async () => {
  await central.close();
  rmSync(folder, { recursive: true, force: true });
});

const presign = (file: object = AVATAR) =>
  central.call('POST', '/users/presigned-url', { headers: account.key, body: file });

async function put(url: string, payload: Buffer = PNG, type = 'image/png') {
  const { pathname, search } = new URL(url);
  const answer = await central.server.inject({
    method: 'PUT',
    url: `${pathname}${search}`,
    headers: { 'content-type': type },
    payload,
  });
  return { status: answer.statusCode, code: answer.json().error?.code, body: answer.json() };
}

const get = (url: string) => central.server.inject({ method: 'GET', url: new URL(url).pathname });
const filesIn = (purpose = 'avatar') => {
  try {
    return readdirSync(join(folder, purpose));
  } catch {
    return [];
  }
};

it('signs a URL, accepts the file once and serves the avatar publicly', async () => {
  const { status, body } = await presign();
  expect([status, body]).toEqual([
    201,
    {
      upload_url: expect.stringMatching(
        /^http:\/\/localhost:80\/objects\/avatar\/[0-9a-f-]{36}\/me\.png\?/,
      ),
      method: 'PUT',
      headers: { 'Content-Type': 'image/png' },
      object_key: expect.stringMatching(/^avatar\/[0-9a-f-]{36}\/me\.png$/),
      public_url: `http://localhost:80/objects/${body.object_key}`,
      expires_at: '2027-01-15T08:15:00.000000',
    },
  ]);
  expect((await get(body.public_url)).statusCode).toBe(404);
  expect(await put(body.upload_url)).toMatchObject({
    status: 200,
    body: { success: true, object_key: body.object_key },
  });
  const shown = await get(body.public_url);
  expect([shown.statusCode, shown.rawPayload.equals(PNG)]).toEqual([200, true]);
  expect(shown.headers).toMatchObject({
    'content-type': 'image/png',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  });
  const other = Buffer.alloc(PNG.length, 1);
  expect(await put(body.upload_url, other)).toMatchObject({ status: 409, code: 'conflict' });
  expect((await get(body.public_url)).rawPayload.equals(PNG)).toBe(true);
  expect(filesIn()).toHaveLength(1);
});

it('rejects upload URLs that were changed or have expired', async () => {
  const { upload_url: url, object_key: key } = (await presign()).body;
  const changed = [
    url.replace('me.png', 'you.png'),
    url.replace(/expires=\d+/, 'expires=9999999999'),
    url.replace(/signature=.{4}/, 'signature=AAAA'),
    url.replace(/\/[0-9a-f-]{36}\//, '/00000000-0000-4000-8000-000000000000/'),
    url.replace('avatar/', 'feedback/'),
  ];
  for (const bad of changed) {
    expect([bad, await put(bad)]).toMatchObject([bad, { status: 403, code: 'forbidden' }]);
  }
  expect((await put(url.replace(/\?.*/, ''))).status).toBe(422);
  expect((await put(url.replace(key, 'avatar/../../etc/passwd'))).status).toBe(404);
  await central.clock.advance(900_000);
  expect(await put(url)).toMatchObject({ status: 403, code: 'forbidden' });
  expect(filesIn()).toEqual([]);
});

it('accepts only an upload of exactly the signed type and size, and stores no other', async () => {
  const { upload_url: url } = (await presign()).body;
  expect((await put(url, PNG, 'text/html')).status).toBe(400);
  expect((await put(url, PNG.subarray(1))).status).toBe(400);
  expect((await put(url, Buffer.concat([PNG, PNG]))).status).toBe(400);
  expect(filesIn()).toEqual([]);
  expect((await put(url)).status).toBe(200);
});

it('rejects an endless upload over a real socket, and continues to serve after a client has disconnected', async () => {
  const origin = await central.server.listen({ port: 0, host: '127.0.0.1' });
  const { pathname, search } = new URL((await presign()).body.upload_url);
  const send = (body: ReadableStream, signal?: AbortSignal) =>
    fetch(`${origin}${pathname}${search}`, {
      method: 'PUT',
      headers: { 'content-type': 'image/png' },
      body,
      duplex: 'half',
      ...(signal === undefined ? {} : { signal }),
    });
  const refused = await send(chunks(PNG.length, PNG));
  expect([refused.status, await codeOf(refused)]).toEqual([400, 'bad_request']);
  const gone = new AbortController();
  const sending = send(chunks(1, PNG.subarray(1)), gone.signal);
  await expect.poll(() => filesIn().length).toBe(1);
  gone.abort();
  await expect(sending).rejects.toThrow();
  await expect.poll(() => filesIn()).toEqual([]);
  const taken = await fetch(`${origin}${pathname}${search}`, {
    method: 'PUT',
    headers: { 'content-type': 'image/png' },
    body: PNG,
  });
  expect(taken.status).toBe(200);
});

const codeOf = async (answer: Response) =>
  ((await answer.json()) as { error: { code: string } }).error.code;

/** Yields `count` chunks, at most 50, and then does not end. */
function chunks(count: number, chunk: Buffer): ReadableStream {
  return Readable.toWeb(
    Readable.from(
      (async function* () {
        for (let sent = 0; sent < Math.min(count, 50); sent += 1) yield chunk;
        await new Promise(() => undefined);
      })(),
    ),
  ) as ReadableStream;
}

it('stores only one of two concurrent uploads to the same URL', async () => {
  const { upload_url: url, public_url: shown } = (await presign()).body;
  const all = await Promise.all([put(url), put(url), put(url)]);
  expect(all.map(({ status }) => status).toSorted()).toEqual([200, 409, 409]);
  expect([(await get(shown)).statusCode, filesIn().length]).toEqual([200, 1]);
});

it.each([
  [{ content_type: 'image/svg+xml' }, 422],
  [{ content_type: 'text/html' }, 422],
  [{ size_bytes: 0 }, 422],
  [{ size_bytes: 10 * 1024 * 1024 + 1 }, 422],
  [{ size_bytes: 10 * 1024 * 1024 }, 201],
  [{ purpose: 'backup' }, 422],
  [{ file_name: '' }, 422],
  [{ file_name: '../../../etc/pass wd' }, 201],
])('returns for %j the status %i', async (change, status) => {
  const answer = await presign({ ...AVATAR, ...change });
  expect(answer.status).toBe(status);
  if (status === 201) {
    expect(answer.body.object_key).toMatch(/^avatar\/[0-9a-f-]{36}\/[A-Za-z0-9][\w.-]*$/);
  }
});

it('serves avatars, but no other uploads', async () => {
  const { body } = await presign({ ...AVATAR, purpose: 'feedback' });
  expect(body.public_url).toBeNull();
  expect((await put(body.upload_url)).status).toBe(200);
  expect((await get(body.upload_url)).statusCode).toBe(404);
  expect(filesIn('feedback')).toHaveLength(1);
});

it("limits an account's uploads, and stops counting unused URLs after their expiry", async () => {
  for (let full = 0; full < 20; full += 1) {
    expect((await presign({ ...AVATAR, size_bytes: 10 * 1024 * 1024 })).status).toBe(201);
  }
  const refused = await presign();
  expect([refused.status, refused.body.error.code]).toEqual([400, 'bad_request']);
  await central.clock.advance(900_000 + 60_001);
  await central.central.sweepAccounts();
  expect((await presign()).status).toBe(201);
});

it('removes the objects of a deleted account', async () => {
  const { upload_url: url, public_url: shown } = (await presign()).body;
  await put(url);
  await central.call('DELETE', '/users/me', { headers: account.session });
  await central.central.sweepAccounts();
  expect([(await get(shown)).statusCode, filesIn()]).toEqual([404, []]);
});

it('requires a credential, and rejects uploads if no object store is configured', async () => {
  const open = await central.call('POST', '/users/presigned-url', { body: AVATAR });
  expect(open.status).toBe(401);
  await central.close();
  central = await createTestCentral();
  account = await central.signUp();
  expect((await presign()).status).toBe(400);
});

it('serves and removes uploads of another process on the same database and folder', async () => {
  const { body } = await presign();
  const other = await createTestCentral({ objects: { folder }, db: central.ports.db });
  const first = central;
  central = other;
  expect((await put(body.upload_url)).status).toBe(200);
  central = first;
  expect(await put(body.upload_url)).toMatchObject({ status: 409, code: 'conflict' });
  const served = await get(body.public_url);
  expect([served.statusCode, served.rawPayload.equals(PNG)]).toEqual([200, true]);
  await other.server.close();
});
