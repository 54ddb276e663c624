import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';

const HOUR_MS = 3_600_000;

let scene: PodScene;
let market: PodScene['market'];
let host: PodScene['host'];
let id: string;
beforeEach(async () => {
  scene = await createPodScene();
  ({ market, host } = scene);
  id = await scene.running();
});
afterEach(() => scene.close());

describe('PATCH /pods/{id}', () => {
  it('stores name and limits without calling the node', async () => {
    const calls = host.calls.length;
    const body = { pod_name: 'new', max_spend_usd: 12.5, idle_shutdown_minutes: 30 };
    expect(await scene.call('PATCH', `/pods/${id}`, body)).toMatchObject({ status: 200, body });
    expect(await scene.pod(id)).toMatchObject({ ...body, status: 'RUNNING' });
    await scene.call('PATCH', `/pods/${id}`, { max_spend_usd: null });
    expect(await scene.pod(id)).toMatchObject({ ...body, max_spend_usd: null });
    await market.sync();
    expect(host.calls).toHaveLength(calls);
  });

  it('counts hours from the creation of the pod, as for a scheduled removal', async () => {
    const created = (await market.ports.db.selectFrom('pods').selectAll().executeTakeFirstOrThrow())
      .created_at;
    await market.clock.advance(2 * HOUR_MS);
    const patched = await scene.call('PATCH', `/pods/${id}`, { termination_hours: 5 });
    expect(patched.body).toMatchObject({
      termination_hours: 5,
      removal_scheduled_at: naiveUtc(created + 5 * HOUR_MS),
    });
    const late = await scene.call('PATCH', `/pods/${id}`, { termination_hours: 1.5 });
    expect(late.body.error.code).toBe('ttl_invalid');
    const cleared = await scene.call('PATCH', `/pods/${id}`, { termination_hours: null });
    expect(cleared.body).toMatchObject({ termination_hours: null, removal_scheduled_at: null });
    await scene.call('PATCH', `/pods/${id}`, { termination_hours: 5 });
    await scene.later(3 * HOUR_MS - 10_000);
    await scene.later(10_000);
    expect((await scene.call('GET', '/pods')).body).toEqual([]);
  });

  it.each<[object, number, string]>([
    [{}, 400, 'bad_request'],
    [{ pod_name: null, unknown: 1 }, 400, 'bad_request'],
    [{ termination_hours: 721 }, 400, 'ttl_invalid'],
    [{ termination_hours: '5' }, 422, 'validation_error'],
    [{ max_spend_usd: -1 }, 422, 'validation_error'],
    [{ max_spend_usd: 1e-9 }, 422, 'validation_error'],
    [{ max_spend_usd: 0.0000015 }, 422, 'validation_error'],
    [{ max_spend_usd: 0.000001 }, 422, 'validation_error'],
    [{ idle_shutdown_minutes: 0.5 }, 422, 'validation_error'],
    [{ pod_name: '' }, 422, 'validation_error'],
  ])('rejects %j', async (body, status, code) => {
    const refused = await scene.call('PATCH', `/pods/${id}`, body);
    expect([refused.status, refused.body.error.code]).toEqual([status, code]);
  });
});
