import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { type S3Server, startS3Server } from '../../../../test/fakes/external/s3-server.ts';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { createS3Objects } from '../../platform/adapters/s3-objects.ts';

const FILE = Buffer.alloc(2_000, 'x');
const WISH = {
  file_name: 'a b+c.png',
  content_type: 'image/png',
  size_bytes: FILE.length,
  purpose: 'avatar',
};

let laterMs: number;
let bucket: S3Server;
let central: TestCentral;
let account: TestAccount;
beforeEach(async () => {
  laterMs = 0;
  bucket = await startS3Server(() => systemClock.now() + laterMs);
  central = await createTestCentral({ objects: createS3Objects(bucket.options) });
  account = await central.signUp();
});
afterEach(async () => {
  await central.close();
  await bucket.close();
});

const presign = async () =>
  (await central.call('POST', '/users/presigned-url', { headers: account.key, body: WISH })).body;
const put = async (url: string, headers: Record<string, string>, body = FILE) =>
  (await fetch(url, { method: 'PUT', headers, body })).status;

it('signs a URL that a bucket accepts, and removes the object with the account', async () => {
  const signed = await presign();
  expect(signed).toMatchObject({
    method: 'PUT',
    headers: { 'Content-Type': 'image/png' },
    public_url: `https://cdn.example/${signed.object_key}`,
  });
  expect(await put(signed.upload_url, signed.headers)).toBe(200);
  const stored = bucket.objects.get(`/uploads/${signed.object_key}`);
  expect([stored?.type, stored?.body.equals(FILE)]).toEqual(['image/png', true]);
  await central.call('DELETE', '/users/me', { headers: account.session });
  await central.central.sweepAccounts();
  expect(bucket.objects.size).toBe(0);
});

it('signs type, size, key and expiry', async () => {
  const { upload_url: url, headers } = await presign();
  expect(await put(url, { 'Content-Type': 'text/html' })).toBe(403);
  expect(await put(url, headers, Buffer.concat([FILE, FILE]))).toBe(403);
  expect(await put(url.replace('avatar/', 'feedback/'), headers)).toBe(403);
  laterMs = 900_000;
  expect(await put(url, headers)).toBe(403);
  laterMs = 0;
  expect([await put(url, headers), bucket.objects.size]).toEqual([200, 1]);
});
