import { afterEach, beforeEach, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { createLocalChannels } from './local-channels.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';

let scene: PodScene;
let id: string;
beforeEach(async () => {
  scene = await createPodScene();
  id = await scene.running();
});
afterEach(() => scene.close());

const ask = (body?: object, podId = id) => scene.call('POST', `/pods/${podId}/chat-channel`, body);
const stored = () => scene.market.ports.db.selectFrom('support_channels').selectAll().execute();

/** As if the account's owner had linked it. */
async function link({ id: accountId }: TestAccount = scene.account): Promise<void> {
  await scene.market.ports.db
    .updateTable('accounts')
    .set({ chat_user_id: `chat-${accountId}`, chat_username: 'ada' })
    .where('id', '=', accountId)
    .execute();
}

it('opens a channel for a pod and returns the same one afterwards', async () => {
  await link();
  const openedAt = naiveUtc(scene.market.clock.now());
  const { status, body } = await ask({ topic: ' no GPU ', message: 'nvidia-smi hangs' });
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
    expect((await ask(later)).body).toEqual({ ...body, created: false });
  }
  expect(await stored()).toMatchObject([
    { topic: 'no GPU', message: 'nvidia-smi hangs', chat_user_id: `chat-${scene.account.id}` },
  ]);
});

it('opens one for several who ask at once', async () => {
  await link();
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask({})));
  expect(answers.filter(({ body }) => body.created)).toHaveLength(1);
  expect(new Set(answers.map(({ body }) => body.channel_id)).size).toBe(1);
  expect(await stored()).toHaveLength(1);
});

it('is for a pod of the caller that is there, and for a linked chat account', async () => {
  const unlinked = await ask({});
  expect([unlinked.status, unlinked.body.error.code]).toEqual([403, 'forbidden']);
  expect(unlinked.body.error.hint).toContain('oauth-url');
  await link();
  const absent = await ask({}, NOWHERE);
  expect([absent.status, absent.body.error.code]).toEqual([404, 'POD_NOT_FOUND']);
  const stranger = await scene.market.renter();
  await link(stranger);
  const path = `/pods/${id}/chat-channel`;
  const foreign = await scene.market.call('POST', path, { headers: stranger.key, body: {} });
  expect([foreign.status, foreign.body.error.code]).toEqual([403, 'forbidden']);
  expect((await scene.market.call('POST', path, { body: {} })).status).toBe(401);
  await scene.remove(id);
  await scene.market.sync();
  const deleted = await ask({});
  expect([deleted.status, deleted.body.error.code]).toEqual([404, 'POD_NOT_FOUND']);
  expect(deleted.body.details).toMatchObject({ reason_code: 'user_initiated' });
  expect(await stored()).toEqual([]);
});

it.each<[string, object, number]>([
  ['a topic of 200 characters', { topic: 'x'.repeat(200) }, 200],
  ['a topic of 201', { topic: 'x'.repeat(201) }, 422],
  ['a message of 2,000 characters', { message: 'x'.repeat(2_000) }, 200],
  ['a message of 2,001', { message: 'x'.repeat(2_001) }, 422],
  ['a topic that is no text', { topic: 7 }, 422],
])('answers %s with what it is', async (_, body, status) => {
  await link();
  expect((await ask(body)).status).toBe(status);
});

it('shows where the channel is, where that is set up', async () => {
  await scene.close();
  scene = await createPodScene({ channelUrl: 'https://chat.example/support/' });
  id = await scene.running();
  await link();
  const { body } = await ask();
  expect(body.channel_url).toBe(`https://chat.example/support/${body.channel_name}`);
});

it('asks the platform that it is given, with what it needs', async () => {
  const asked: object[] = [];
  await scene.close();
  scene = await createPodScene({
    channels: {
      async open(wish) {
        asked.push(wish);
        const { name } = wish;
        return { id: 'C1', name, url: 'https://chat.example/C1', created: true, createdAtMs: 0 };
      },
    },
  });
  id = await scene.running();
  await link();
  expect((await ask({ message: 'help' })).body).toMatchObject({
    ...{ channel_id: 'C1', channel_url: 'https://chat.example/C1', created: true },
    created_at: '1970-01-01T00:00:00.000000',
  });
  expect(asked).toMatchObject([
    { podId: id, chatUserId: `chat-${scene.account.id}`, topic: null, message: 'help' },
  ]);
});

it('forgets who asked and what was written with the account', async () => {
  await link();
  await ask({ topic: 'private', message: 'my name is Ada' });
  await scene.remove(id);
  await scene.market.call('DELETE', '/users/me', { headers: scene.account.session });
  expect(await stored()).toMatchObject([
    { pod_id: id, chat_user_id: null, topic: null, message: null },
  ]);
});

it('opens none for an account that was deleted since it was looked at', async () => {
  await scene.remove(id);
  await scene.market.sync();
  await scene.market.call('DELETE', '/users/me', { headers: scene.account.session });
  const channels = createLocalChannels({ ...scene.market.ports, baseUrl: null });
  const wish = { podId: id, accountId: scene.account.id, name: 'pod', chatUserId: 'chat-ada' };
  const opening = channels.open({ ...wish, topic: 'private', message: 'my name is Ada' });
  await expect(opening).rejects.toMatchObject({ code: 'unauthorized' });
  expect(await stored()).toEqual([]);
});
