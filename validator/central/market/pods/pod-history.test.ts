import { afterEach, beforeEach, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';

let scene: PodScene;
beforeEach(async () => {
  scene = await createPodScene();
});
afterEach(() => scene.close());

/** Rents and removes a pod, then advances the clock by a second. */
async function ended(pod_name: string): Promise<string> {
  const id = await scene.running({ pod_name });
  await scene.remove(id);
  await scene.market.sync();
  await scene.market.clock.advance(1_000);
  return id;
}

const history = (query = '') => scene.call('GET', `/pods/history${query}`);
const namesOf = ({ items }: { items: { pod_name: string }[] }) =>
  items.map(({ pod_name }) => pod_name);

it('returns 404 with time and reason for a deleted pod, or the pod’s last state with include_deleted', async () => {
  const id = await scene.running();
  await scene.remove(id);
  expect(await scene.pod(id)).toMatchObject({ status: 'DELETING' });
  await scene.market.sync();
  const endedAt = naiveUtc(scene.market.clock.now());
  const gone = await scene.call('GET', `/pods/${id}`);
  expect([gone.status, gone.body.error.code, gone.body.details]).toEqual([
    404,
    'pod_not_found',
    { deleted_at: endedAt, reason_code: 'user_initiated' },
  ]);
  const tombstone = await scene.call('GET', `/pods/${id}?include_deleted=true`);
  expect(tombstone.body).toMatchObject({
    id,
    status: 'DELETED',
    deleted_at: endedAt,
    reason_code: 'user_initiated',
    ssh_connect_cmd: null,
    jupyter_url: null,
    phase: null,
  });
  expect((await scene.events(id)).at(-1)).toMatchObject({ sub_event_type: 'pod-delete.success' });
  const stranger = await scene.market.renter();
  for (const path of ['?include_deleted=true', '', '/events']) {
    const foreign = await scene.market.call('GET', `/pods/${id}${path}`, { headers: stranger.key });
    expect([foreign.status, foreign.body.details]).toEqual([404, null]);
  }
});

it('shows a failed creation as deleted after 180 s', async () => {
  scene.host.arrives = 'failed';
  scene.host.removesAtOnce = false;
  const id = await scene.running();
  const path = `/pods/${id}?include_deleted=true`;
  expect((await scene.call('GET', path)).body).not.toHaveProperty('deleted_at');
  await scene.market.clock.advance(180_000);
  const { body } = await scene.call('GET', path);
  expect(body).toMatchObject({
    status: 'DELETED',
    reason_code: 'start_failed',
    phase: 'deleting',
    deleted_at: naiveUtc(scene.market.clock.now()),
  });
  // Its node has not removed the pod yet.
  expect((await history()).body.items).toEqual([]);
  scene.host.pods.clear();
  await scene.later();
  await scene.later();
  expect((await history()).body.items).toMatchObject([
    { id, status: 'DELETED', reason_code: 'start_failed', deleted_at: expect.any(String) },
  ]);
});

it('lists a pod that is being deleted on request, until it is in the history', async () => {
  scene.host.removesAtOnce = false;
  const id = await scene.running();
  await scene.remove(id);
  await scene.later();
  const listed = async (query: string) => (await scene.call('GET', `/pods${query}`)).body;
  expect(await listed('')).toEqual([]);
  expect(await listed('?include_deleting=true')).toMatchObject([{ id, status: 'DELETING' }]);
  expect((await history()).body.items).toEqual([]);
  scene.host.pods.clear();
  await scene.later();
  await scene.later();
  expect(await listed('?include_deleting=true')).toEqual([]);
  expect((await history()).body.items).toMatchObject([{ id, status: 'DELETED' }]);
});

it('lists ended pods by page, most recently ended first', async () => {
  for (const name of ['a', 'b', 'c']) await ended(name);
  const live = await scene.running({ pod_name: 'live' });
  const whole = (await history()).body;
  expect(whole).toMatchObject({ total: 3, page: 1, limit: 20, has_next: false });
  expect(namesOf(whole)).toEqual(['c', 'b', 'a']);
  expect(whole.items[0]).toMatchObject({
    status: 'DELETED',
    reason_code: 'user_initiated',
    gpu_count: '1',
    deleted_at: naiveUtc(scene.market.clock.now() - 1_000),
  });
  const first = (await history('?limit=2')).body;
  expect([namesOf(first), first.has_next]).toEqual([['c', 'b'], true]);
  const second = (await history('?limit=2&page=2')).body;
  expect([namesOf(second), second.has_next, second.total]).toEqual([['a'], false, 3]);
  expect((await history('?page=1000000&limit=100')).body).toMatchObject({ items: [], total: 3 });
  expect((await history('/')).status).toBe(200);
  expect((await scene.pod(live)).status).toBe('RUNNING');
  const stranger = await scene.market.renter();
  const theirs = await scene.market.call('GET', '/pods/history', { headers: stranger.key });
  expect(theirs.body).toMatchObject({ items: [], total: 0 });
  expect((await scene.market.call('GET', '/pods/history')).status).toBe(401);
});

it.each(['page=0', 'page=1000001', 'page=x', 'limit=0', 'limit=101', 'limit=1.5'])(
  'returns 422 for %s',
  async (query) => {
    const { status, body } = await history(`?${query}`);
    expect([status, body.validation_errors[0].field]).toEqual([
      422,
      `query.${query.split('=')[0]}`,
    ]);
  },
);
