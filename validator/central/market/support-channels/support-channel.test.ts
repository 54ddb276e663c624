import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { createLocalChannels } from './support-channel.service.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';

let scene: PodScene;
let id: string;
beforeEach(async () => {
  scene = await createPodScene();
  id = await scene.running();
});
afterEach(() => scene.close());

const open = (body?: object, podId = id) => scene.call('POST', `/pods/${podId}/chat-channel`, body);
const stored = () => scene.market.ports.db.selectFrom('support_channels').selectAll().execute();

/** Links a chat account in the database. */
async function link({ id: accountId }: TestAccount = scene.account): Promise<void> {
  await scene.market.ports.db
    .updateTable('accounts')
    .set({ chat_user_id: `chat-${accountId}`, chat_username: 'ada' })
    .where('id', '=', accountId)
    .execute();
}

it('opens a channel for a pod, and returns the same channel afterwards', async () => {
  await link();
  const openedAt = naiveUtc(scene.market.clock.now());
  const { status, body } = await open({ topic: ' no GPU ', message: 'nvidia-smi hangs' });
  expect([status, body]).toEqual([
    200,
    {
      channel_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      channel_name: `pod-${id.replaceAll('-', '').slice(0, 12)}`,
      channel_url: null,
      created: true,
      pod_id: id,
      created_at: openedAt,
    },
  ]);
  await scene.market.clock.advance(60_000);
  for (const later of [undefined, {}, { topic: 'other', message: null }]) {
    expect((await open(later)).body).toEqual({ ...body, created: false });
  }
  expect(await stored()).toMatchObject([
    { topic: 'no GPU', message: 'nvidia-smi hangs', chat_user_id: `chat-${scene.account.id}` },
  ]);
});

it('opens one channel for concurrent requests', async () => {
  await link();
  const answers = await Promise.all(Array.from({ length: 20 }, () => open({})));
  expect(answers.filter(({ body }) => body.created)).toHaveLength(1);
  expect(new Set(answers.map(({ body }) => body.channel_id)).size).toBe(1);
  expect(await stored()).toHaveLength(1);
});

it('requires an existing pod of the caller and a linked chat account', async () => {
  const unlinked = await open({});
  expect([unlinked.status, unlinked.body.error.code]).toEqual([403, 'forbidden']);
  expect(unlinked.body.error.hint).toContain('oauth-url');
  await link();
  const absent = await open({}, NOWHERE);
  expect([absent.status, absent.body.error.code]).toEqual([404, 'POD_NOT_FOUND']);
  const stranger = await scene.market.renter();
  await link(stranger);
  const path = `/pods/${id}/chat-channel`;
  const foreign = await scene.market.call('POST', path, { headers: stranger.key, body: {} });
  expect([foreign.status, foreign.body.error.code]).toEqual([403, 'forbidden']);
  expect((await scene.market.call('POST', path, { body: {} })).status).toBe(401);
  await scene.remove(id);
  await scene.market.sync();
  const deleted = await open({});
  expect([deleted.status, deleted.body.error.code]).toEqual([404, 'POD_NOT_FOUND']);
  expect(deleted.body.details).toMatchObject({ reason_code: 'user_initiated' });
  expect(await stored()).toEqual([]);
});

it.each<[string, object, number]>([
  ['a topic of 200 characters', { topic: 'x'.repeat(200) }, 200],
  ['a topic of 201 characters', { topic: 'x'.repeat(201) }, 422],
  ['a message of 2,000 characters', { message: 'x'.repeat(2_000) }, 200],
  ['a message of 2,001 characters', { message: 'x'.repeat(2_001) }, 422],
  ['a topic that is not a string', { topic: 7 }, 422],
])('validates %s', async (_, body, status) => {
  await link();
  expect((await open(body)).status).toBe(status);
});

it('returns the URL of the channel if a base URL is configured', async () => {
  await scene.close();
  scene = await createPodScene({ channelUrl: 'https://chat.example/support/' });
  id = await scene.running();
  await link();
  const { body } = await open();
  expect(body.channel_url).toBe(`https://chat.example/support/${body.channel_name}`);
});

it('opens the channel on the configured platform', async () => {
  const requests: object[] = [];
  await scene.close();
  scene = await createPodScene({
    channels: {
      async open(request) {
        requests.push(request);
        const { name } = request;
        return { id: 'C1', name, url: 'https://chat.example/C1', created: true, createdAtMs: 0 };
      },
    },
  });
  id = await scene.running();
  await link();
  expect((await open({ message: 'help' })).body).toMatchObject({
    channel_id: 'C1',
    channel_url: 'https://chat.example/C1',
    created: true,
    created_at: '1970-01-01T00:00:00.000000',
  });
  expect(requests).toMatchObject([
    { podId: id, chatUserId: `chat-${scene.account.id}`, topic: null, message: 'help' },
  ]);
});

it('clears the chat user and the texts when the account is deleted', async () => {
  await link();
  await open({ topic: 'private', message: 'my name is Ada' });
  await scene.remove(id);
  await scene.market.call('DELETE', '/users/me', { headers: scene.account.session });
  expect(await stored()).toMatchObject([
    { pod_id: id, chat_user_id: null, topic: null, message: null },
  ]);
});

it('opens no channel for an account that is deleted during the request', async () => {
  await scene.remove(id);
  await scene.market.sync();
  await scene.market.call('DELETE', '/users/me', { headers: scene.account.session });
  const channels = createLocalChannels({ ...scene.market.ports, baseUrl: null });
  const request = { podId: id, accountId: scene.account.id, name: 'pod', chatUserId: 'chat-ada' };
  const opening = channels.open({ ...request, topic: 'private', message: 'my name is Ada' });
  await expect(opening).rejects.toMatchObject({ code: 'unauthorized' });
  expect(await stored()).toEqual([]);
});

describe('messages', () => {
  const SUPPORT = 'support@market.example';
  beforeEach(async () => {
    await scene.close();
    scene = await createPodScene({ supportEmail: SUPPORT });
    id = await scene.running();
    await link();
  });
  const mails = async () => {
    const headers = { host: 'localhost' };
    const { body } = await scene.market.call('GET', '/_local/outbox', { headers });
    return body.filter(({ to }: { to: string }) => to === SUPPORT);
  };

  it('reach the operator by mail, once for a repeated request', async () => {
    const message = { topic: 'no GPU', message: '<b>nvidia-smi</b> hangs' };
    await open(message);
    await open(message);
    await open({ topic: 'no GPU' });
    await open({ message: 'it works again' });
    const sent = await mails();
    expect(sent).toHaveLength(2);
    const first = sent.find(({ subject }: { subject: string }) => subject.includes('no GPU'));
    expect(first.kind).toBe('support-message');
    for (const part of [scene.account.email, id, '<b>nvidia-smi</b> hangs']) {
      expect(first.text).toContain(part);
    }
    expect(first.html).toContain('&lt;b&gt;nvidia-smi');
  });

  it('are limited to 20 in an hour', async () => {
    for (let index = 0; index < 20; index += 1) await open({ message: `${index}` });
    const last = await open({ message: 'one more' });
    expect([last.status, last.headers['retry-after']]).toEqual([429, '60']);
    expect(await mails()).toHaveLength(20);
    await scene.market.clock.advance(3_600_001);
    expect((await open({ message: 'one more' })).status).toBe(200);
  });
});
