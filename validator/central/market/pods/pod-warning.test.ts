import { afterEach, beforeEach, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { createCentral } from '../../app.ts';

const MINUTE_MS = 60_000;

let scene: PodScene;
beforeEach(async () => {
  scene = await createPodScene();
});
afterEach(() => scene.close());

type Warned = { detail: string; event: { minutes_left: number } };

/** Minutes left in the warnings of a pod, in order. */
async function warnings(id: string): Promise<number[]> {
  const events: Warned[] = await scene.events(id);
  return events
    .filter(({ detail }) => detail === 'removal_warning')
    .map(({ event }) => event.minutes_left);
}

const minutes = (count: number) => scene.later(count * MINUTE_MS);

async function schedule(id: string, inMinutes: number) {
  const time = `${naiveUtc(scene.market.clock.now() + inMinutes * MINUTE_MS)}Z`;
  return scene.call('POST', `/pods/${id}/schedule-removal`, { removal_scheduled_at: time });
}

it('warns once at 60, at 15 and at 5 minutes before the removal, with the remaining time', async () => {
  const id = await scene.running({ termination_hours: 2 });
  await scene.later(60 * MINUTE_MS - 1);
  expect(await warnings(id)).toEqual([]);
  await scene.later(1);
  expect((await scene.events(id)).at(-1)).toMatchObject({
    event_type: 'pod-lifecycle',
    sub_event_type: 'pod-lifecycle.status',
    actor: { auth: 'system', api_key_id: null },
    from_status: 'RUNNING',
    to_status: 'RUNNING',
    reason: 'scheduled_termination',
    request_id: null,
    event: {
      detail: 'removal_warning',
      minutes_left: 60,
      removal_scheduled_at: (await scene.pod(id)).removal_scheduled_at,
    },
  });
  await scene.market.sync();
  await minutes(44);
  expect(await warnings(id)).toEqual([60]);
  await minutes(1);
  await minutes(1);
  expect(await warnings(id)).toEqual([60, 15]);
  await minutes(9);
  await minutes(4);
  expect(await warnings(id)).toEqual([60, 15, 5]);
  await scene.later(MINUTE_MS - 10_000);
  await scene.later(10_000);
  expect(await warnings(id)).toEqual([60, 15, 5]);
  expect((await scene.pod(id)).details).toMatchObject({ reason_code: 'scheduled_termination' });
});

it('sends only the latest warning after a downtime, and no warning once the removal is due', async () => {
  const id = await scene.running({ termination_hours: 2 });
  await minutes(108);
  expect(await warnings(id)).toEqual([12]);
  const late = await scene.running({ termination_hours: 2 });
  await minutes(120);
  expect(await warnings(late)).toEqual([]);
  expect(await warnings(id)).toEqual([12]);
});

it('does not repeat warnings after a restart of the central API', async () => {
  const id = await scene.running({ termination_hours: 2 });
  await minutes(60);
  const restarted = await createCentral(scene.market.ports, {
    validators: [],
    signupCreditUusd: 0,
    verifyEmailAtSignup: true,
    trustedProxies: [],
  });
  await restarted.syncPods();
  expect(await warnings(id)).toEqual([60]);
  await scene.market.clock.advance(45 * MINUTE_MS);
  await restarted.syncPods();
  await restarted.syncPods();
  expect(await warnings(id)).toEqual([60, 15]);
  await restarted.close();
});

it('warns again after the removal was rescheduled to another time', async () => {
  const id = await scene.running();
  await schedule(id, 61);
  await minutes(1);
  await schedule(id, 60);
  await scene.market.sync();
  expect(await warnings(id)).toEqual([60]);
  await minutes(50);
  expect(await warnings(id)).toEqual([60, 10]);
  await schedule(id, 90);
  await minutes(29);
  expect(await warnings(id)).toEqual([60, 10]);
  await minutes(1);
  expect(await warnings(id)).toEqual([60, 10, 60]);
});

it('warns again after a change of termination_hours', async () => {
  const id = await scene.running({ termination_hours: 2 });
  await minutes(60);
  await scene.call('PATCH', `/pods/${id}`, { termination_hours: 3 });
  await scene.call('PATCH', `/pods/${id}`, { termination_hours: 3 });
  await minutes(59);
  expect(await warnings(id)).toEqual([60]);
  await minutes(1);
  expect(await warnings(id)).toEqual([60, 60]);
});

it('cancels the warnings of a cancelled removal, and of a pod that is deleted earlier', async () => {
  const cancelled = await scene.running({ termination_hours: 2 });
  const removed = await scene.running({ termination_hours: 2 });
  await scene.call('DELETE', `/pods/${cancelled}/schedule-removal`);
  scene.host.removesAtOnce = false;
  await scene.remove(removed);
  await minutes(116);
  expect(await warnings(cancelled)).toEqual([]);
  expect(await warnings(removed)).toEqual([]);
});
