import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';
const TEXT = 'the comment';

let folder: string;
let scene: PodScene;
let id: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-feedback-'));
  scene = await createPodScene({ objects: { folder } });
  id = await scene.running();
});
afterEach(async () => {
  await scene.close();
  rmSync(folder, { recursive: true, force: true });
});

const send = (body: object, podId = id) => scene.call('POST', `/pods/${podId}/feedback`, body);
const stored = () => scene.market.ports.db.selectFrom('feedback').selectAll().execute();

/** Creates an upload, sends its content if `isSent`, and returns its key. */
async function upload({ by = scene.account, purpose = 'feedback', isSent = true } = {}) {
  const { body } = await scene.market.call('POST', '/users/presigned-url', {
    headers: by.key,
    body: {
      file_name: 'log.txt',
      content_type: 'text/plain',
      purpose,
      size_bytes: TEXT.length,
    },
  });
  const { pathname, search } = new URL(body.upload_url);
  const transfer = { url: `${pathname}${search}`, headers: body.headers, payload: TEXT };
  if (isSent) {
    expect((await scene.market.server.inject({ method: 'PUT', ...transfer })).statusCode).toBe(200);
  }
  return body.object_key as string;
}

it('stores feedback and returns it', async () => {
  const key = await upload();
  const sent = { rating: 4, category: 'network', comment: ' slow at night ', contact_ok: true };
  const { status, body } = await send({ ...sent, attachment_keys: [key, key] });
  expect([status, body]).toEqual([
    201,
    {
      ...sent,
      id: expect.any(String),
      pod_id: id,
      user_id: scene.account.id,
      comment: 'slow at night',
      created_at: '2027-01-15T08:00:01.000000',
    },
  ]);
  expect((await send({ rating: 1, category: null, comment: '' })).body).toMatchObject({
    rating: 1,
    category: 'other',
    comment: '',
    contact_ok: false,
  });
  expect((await stored()).map((row) => row.attachment_keys_json).toSorted()).toEqual([
    JSON.stringify([key]),
    '[]',
  ]);
});

it('accepts feedback after the pod has ended, and only from its renter', async () => {
  await scene.remove(id);
  await scene.market.sync();
  expect((await scene.call('GET', `/pods/${id}`)).status).toBe(404);
  expect((await send({ rating: 2, comment: 'gone too soon' })).status).toBe(201);
  const stranger = await scene.market.renter();
  const path = `/pods/${id}/feedback`;
  const body = { rating: 5 };
  const foreign = await scene.market.call('POST', path, { headers: stranger.key, body });
  for (const refused of [foreign, await send(body, NOWHERE)]) {
    expect([refused.status, refused.body.error.code]).toEqual([404, 'pod_not_found']);
  }
  expect((await scene.market.call('POST', path, { body })).status).toBe(401);
  expect(await stored()).toHaveLength(1);
});

it('accepts as attachments only completed uploads of the caller with the purpose feedback', async () => {
  const stranger: TestAccount = await scene.market.renter();
  const wrong = [
    await upload({ by: stranger }),
    await upload({ purpose: 'template_readme' }),
    await upload({ isSent: false }),
    'feedback/nothing/x',
  ];
  const good = await upload();
  for (const key of wrong) {
    const refused = await send({ rating: 3, attachment_keys: [good, key] });
    expect([key, refused.status, refused.body.error.code]).toEqual([key, 400, 'bad_request']);
  }
  expect(await stored()).toEqual([]);
  expect((await send({ rating: 3, attachment_keys: [good] })).status).toBe(201);
});

it.each<[string, object, number]>([
  ['no rating', {}, 422],
  ['rating 0', { rating: 0 }, 422],
  ['rating 6', { rating: 6 }, 422],
  ['a fractional rating', { rating: 2.5 }, 422],
  ['a rating as a string', { rating: '5' }, 422],
  ['an unknown category', { rating: 1, category: 'price' }, 422],
  ['a comment of 4,001 characters', { rating: 1, comment: 'x'.repeat(4_001) }, 422],
  ['a comment of 4,000 characters', { rating: 1, comment: 'x'.repeat(4_000) }, 201],
  ['six attachments', { rating: 1, attachment_keys: Array(6).fill('feedback/a/b') }, 422],
  ['an attachment that is not a string', { rating: 1, attachment_keys: [7] }, 422],
  ['a comment with a NUL character', { rating: 1, comment: 'a\0b' }, 422],
])('validates %s', async (_, body, status) => {
  expect((await send(body)).status).toBe(status);
});

it('limits a pod to 20 feedback entries, also for concurrent requests', async () => {
  const answers = await Promise.all(Array.from({ length: 25 }, () => send({ rating: 5 })));
  const codes = answers.map(({ status, body }) => (status === 201 ? status : body.error.code));
  expect(codes.toSorted()).toEqual([...Array(20).fill(201), ...Array(5).fill('bad_request')]);
  expect(await stored()).toHaveLength(20);
});

it('stores feedback once for an Idempotency-Key', async () => {
  const sendOnce = (rating: number) =>
    scene.market.call('POST', `/pods/${id}/feedback`, {
      headers: { ...scene.account.key, 'idempotency-key': 'once' },
      body: { rating },
    });
  const first = await sendOnce(4);
  const again = await sendOnce(4);
  expect([again.status, again.body, again.headers['idempotent-replayed']]).toEqual([
    201,
    first.body,
    'true',
  ]);
  expect((await sendOnce(5)).body.error.code).toBe('idempotency_key_reused');
  expect(await stored()).toHaveLength(1);
});

it('clears comment and attachments when the account is deleted, and retains the rating', async () => {
  await send({
    rating: 2,
    comment: 'call me',
    contact_ok: true,
    attachment_keys: [await upload()],
  });
  await scene.remove(id);
  const gone = await scene.market.call('DELETE', '/users/me', { headers: scene.account.session });
  expect(gone.status).toBe(200);
  expect(await stored()).toMatchObject([
    { rating: 2, comment: null, contact_ok: 0, attachment_keys_json: '[]' },
  ]);
});
