import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { createCentral } from '../../app.ts';
import { CONTACT_WAIT_MS } from './pod-contact.ts';

let scene: PodScene;
let market: PodScene['market'];
let host: PodScene['host'];
beforeEach(async () => {
  scene = await createPodScene();
  ({ market, host } = scene);
});
afterEach(() => scene.close());

describe('a deletion', () => {
  it('is sent to the agent after the launch if the deletion is requested during the launch', async () => {
    host.arrives = 'pulling';
    const id = await scene.rentOne();
    await market.sync();
    await scene.remove(id);
    host.change(id, { phase: 'running' });
    await market.sync();
    expect(host.calls).toEqual([`put ${id}`, `delete ${id}`]);
    expect(await scene.freeGpus()).toBe(2);
    expect((await scene.pod(id)).details).toMatchObject({ reason_code: 'user_initiated' });
  });

  it('cancels a launch that was not sent yet', async () => {
    const id = await scene.rentOne();
    await scene.remove(id);
    await market.sync();
    expect(host.calls).toEqual([`delete ${id}`]);
    expect(await scene.freeGpus()).toBe(2);
  });

  it('keeps the GPU reserved until the agent has removed the pod', async () => {
    const id = await scene.rentOne();
    await market.sync();
    host.removesAtOnce = false;
    expect((await scene.remove(id)).body).toMatchObject({ status: 'DELETING', success: true });
    expect(await scene.held()).toBe(0);
    await market.sync();
    await market.sync();
    expect(await scene.freeGpus()).toBe(1);
    expect(await scene.pod(id)).toMatchObject({ status: 'DELETING' });
    expect((await scene.remove(id)).body.error.code).toBe('pod_state_conflict');
    host.change(id, { phase: 'removed' });
    await market.sync();
    expect(await scene.freeGpus()).toBe(2);
    expect(host.calls.filter((call) => call.startsWith('delete'))).toHaveLength(1);
  });

  it('has the reason node_removed if the operator shuts down the marketplace', async () => {
    const id = await scene.rentOne();
    await market.sync();
    expect(await market.central.pods.removeAll()).toBe(1);
    await market.sync();
    expect(await market.central.pods.remaining()).toEqual([]);
    expect(host.calls.at(-1)).toBe(`delete ${id}`);
    const { body } = await scene.call('GET', `/pods/${id}/events`);
    const told = body.filter((event: { event_type: string }) => event.event_type === 'pod-delete');
    const by = { actor: { auth: 'system' }, reason: 'node_removed' };
    expect(told).toMatchObject([
      { sub_event_type: 'pod-delete.requested', ...by },
      { sub_event_type: 'pod-delete.success', ...by },
    ]);
    expect((await scene.pod(id)).details).toMatchObject({ reason_code: 'node_removed' });
  });

  it('keeps the last state of the pod, which is returned with include_deleted', async () => {
    const id = await scene.rentOne();
    await scene.remove(id);
    await market.sync();
    const path = `/pods/${id}?include_deleted=true`;
    const { body } = await scene.call('GET', path);
    expect(body).toMatchObject({
      status: 'DELETED',
      deleted_at: expect.any(String),
      reason_code: 'user_initiated',
      last_event: { sub_event_type: 'pod-delete.success' },
    });
  });

  it('removes the pod again if the pod arrives on its node later', async () => {
    const id = await scene.rentOne();
    await market.sync();
    const view = host.pods.get(id);
    await scene.remove(id);
    await market.sync();
    if (view !== undefined) host.pods.set(id, view);
    await scene.later(10_000);
    expect(host.pods.has(id)).toBe(false);
  });
});

describe('a scheduled removal', () => {
  it('runs when it is due and records its reason', async () => {
    const id = await scene.rentOne({ termination_hours: 1 });
    await scene.later(3_599_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING' });
    await scene.later(1_000);
    await market.sync();
    expect((await scene.pod(id)).details).toMatchObject({ reason_code: 'scheduled_termination' });
    expect(host.pods.size).toBe(0);
  });

  it('runs after a restart if the central API was down when the removal was due', async () => {
    const id = await scene.rentOne({ termination_hours: 1 });
    await scene.later(0);
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING' });
    await market.clock.advance(2 * 3_600_000);
    const restarted = await createCentral(market.ports, {
      validators: [],
      signupCreditUusd: 0,
      verifyEmailAtSignup: true,
      trustedProxies: [],
    });
    await restarted.syncPods();
    await market.clock.advance(CONTACT_WAIT_MS);
    await restarted.syncPods();
    await restarted.syncPods();
    expect((await scene.pod(id)).details).toMatchObject({ reason_code: 'scheduled_termination' });
    expect(host.pods.size).toBe(0);
    await restarted.close();
  });

  it('can be set within 1-720 hours, replaced and cancelled', async () => {
    const id = await scene.rentOne({ termination_hours: 2 });
    const at = (hours: number, ms = 0) => {
      const time = `${naiveUtc(market.clock.now() + hours * 3_600_000 + ms)}Z`;
      return scene.post(id, 'schedule-removal', { removal_scheduled_at: time });
    };
    expect((await at(1, -1)).body.error.code).toBe('ttl_invalid');
    expect((await at(720, 1)).body.error.code).toBe('ttl_invalid');
    expect((await at(1)).body.removal_scheduled_at).toMatch(/^\d{4}-.*\.\d{6}$/);
    expect((await at(720)).status).toBe(200);
    await scene.later(2 * 3_600_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING' });
    const naive = naiveUtc(market.clock.now() + 7_200_000);
    for (const time of ['soon', naive, `${naive} Z`, '2027-02-29T00:00:00Z']) {
      const refused = await scene.post(id, 'schedule-removal', { removal_scheduled_at: time });
      expect([time, refused.status]).toEqual([time, 422]);
      expect(refused.body.validation_errors[0].field).toBe('body.removal_scheduled_at');
    }
    const cancel = () => scene.call('DELETE', `/pods/${id}/schedule-removal`);
    expect((await cancel()).body).toMatchObject({
      removal_scheduled_at: null,
      termination_hours: null,
    });
    expect((await cancel()).body.error.code).toBe('pod_state_conflict');
    await at(2);
    host.removesAtOnce = false;
    await scene.remove(id);
    expect((await at(2)).body.error.code).toBe('pod_state_conflict');
    expect((await cancel()).body.error.code).toBe('pod_state_conflict');
  });
});
