/** A central API whose database is an old copy: nodes run pods that it does not have, or has in an older generation. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { AWAITS_DECISION } from './unknown-pods.plan.ts';

const LOST = '00000000-0000-4000-8000-0000000000aa';

let scene: PodScene;
let operator: TestAccount;
beforeEach(async () => {
  scene = await createPodScene();
  operator = await scene.market.signUp();
  await scene.market.setOperator(operator);
});
afterEach(() => scene.close());

const ask = (method: 'GET' | 'POST', path: string, body?: { reason: string }) =>
  scene.market.call(method, `/operator${path}`, {
    headers: operator.session,
    ...(body === undefined ? {} : { body }),
  });
const unknown = async () => (await ask('GET', '/unknown-pods')).body.pods;
const decide = (act: 'adopt' | 'remove', podId: string) =>
  ask('POST', `/executors/${scene.node.id}/unknown-pods/${podId}/${act}`, { reason: 'old copy' });
const survey = () => scene.market.central.surveyPods();
const rentable = async () =>
  (await scene.call('GET', `/executors/${scene.node.id}/rentability`)).body;
const listed = async () => (await scene.call('GET', '/executors')).body.length;
/** Calls that changed something on the node since the last call of this function. */
const changes = () => scene.host.calls.splice(0);

/** Puts a pod on the node that the database does not have. Returns the view of a pod that the database has. */
async function loseRow() {
  const known = await scene.running();
  const view = scene.host.pods.get(known);
  if (view === undefined) throw new Error('the pod does not run');
  scene.host.pods.set(LOST, { ...view, id: LOST });
  changes();
  return view;
}

it('offers a node with a missing pod no more, and changes nothing on it until an operator removes the pod', async () => {
  // The database has no pod on the node, so that the sync does not visit it.
  const view = await loseRow();
  scene.host.pods.delete(LOST);
  await scene.remove(view.id);
  await scene.later(10_000);
  await scene.later(700_000);
  scene.host.pods.set(LOST, { ...view, id: LOST });
  await scene.later(10_000);
  changes();
  expect(await listed()).toBe(1);
  await survey();
  expect(await unknown()).toMatchObject([
    { pod_id: LOST, executor_id: scene.node.id, kind: 'missing', remove_requested_at: null },
  ]);
  expect((await ask('GET', '/unknown-pods?page=2&limit=1')).body).toEqual({ total: 1, pods: [] });
  expect(await listed()).toBe(0);
  expect(await rentable()).toMatchObject({
    rentable: false,
    reasons: [{ code: 'node_unavailable' }],
  });
  const refused = await scene.market.rent(scene.account, scene.node.id, { gpu_count: 1 });
  expect(refused).toMatchObject({ body: { error: { code: 'node_unavailable' } } });

  expect((await decide('adopt', LOST)).body).toMatchObject({ error: { code: 'conflict' } });
  await survey();
  expect(changes()).toEqual([]);
  expect((await decide('remove', LOST)).status).toBe(200);
  await survey();
  expect(changes()).toEqual([`delete ${LOST}`]);
  await survey();
  expect(await unknown()).toEqual([]);
  expect([await listed(), (await rentable()).rentable]).toEqual([1, true]);
  expect((await decide('remove', LOST)).status).toBe(404);
  expect((await ask('GET', '/audit')).body).toContainEqual(
    expect.objectContaining({ action: 'pod.remove', subject_id: LOST, reason: 'old copy' }),
  );
});

it('lets a new rental wait, with the reason, while the node has unknown pods', async () => {
  await loseRow();
  const waiting = await scene.rentOne();
  await scene.later(10_000);
  expect(await scene.pod(waiting)).toMatchObject({ status: 'PENDING', message: AWAITS_DECISION });
  expect(changes()).toEqual([]);
  await decide('remove', LOST);
  await scene.later(10_000);
  await scene.later(10_000);
  expect(changes()).toEqual([`delete ${LOST}`, `put ${waiting}`]);
  expect(await scene.pod(waiting)).toMatchObject({ status: 'RUNNING', message: null });
});

it('leaves a pod with a newer generation as it is, and continues after its adoption', async () => {
  const pod = await scene.running();
  scene.host.change(pod, { generation: 5, observed_generation: 5, ssh_keys_hash: 'other' });
  changes();
  await scene.later(10_000);
  expect(await unknown()).toMatchObject([{ pod_id: pod, kind: 'newer', generation: 5 }]);
  expect(await scene.pod(pod)).toMatchObject({ status: 'RUNNING', message: AWAITS_DECISION });
  await scene.later(10_000);
  const edit = () => scene.call('PUT', `/pods/${pod}`, { environment: { A: 'b' } });
  expect((await edit()).body).toMatchObject({ error: { code: 'pod_state_conflict' } });
  expect(changes()).toEqual([]);

  expect((await decide('adopt', pod)).status).toBe(200);
  expect([await unknown(), await listed()]).toEqual([[], 1]);
  await scene.later(10_000);
  expect(await scene.pod(pod)).toMatchObject({ status: 'RUNNING', message: null });
  expect((await edit()).status).toBe(200);
  await scene.later(10_000);
  expect(scene.host.specs.get(pod)?.generation).toBe(6);
});

it('removes a pod with a newer generation like a deleted pod, and does not confuse deleted pods with unknown ones', async () => {
  const pod = await scene.running();
  scene.host.change(pod, { generation: 5 });
  await scene.later(10_000);
  scene.host.removesAtOnce = false;
  expect((await decide('remove', pod)).status).toBe(200);
  await scene.later(10_000);
  // The container is still being removed.
  expect(scene.host.pods.get(pod)?.phase).toBe('removing');
  expect([await unknown(), await listed()]).toEqual([[], 1]);
  scene.host.change(pod, { phase: 'removed' });
  await scene.later(10_000);
  expect((await scene.call('GET', `/pods/${pod}`)).status).toBe(404);
});
