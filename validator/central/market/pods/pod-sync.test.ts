import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '#shared/runtime/errors.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';

let scene: PodScene;
let market: PodScene['market'];
let account: PodScene['account'];
let host: PodScene['host'];
beforeEach(async () => {
  scene = await createPodScene();
  ({ market, account, host } = scene);
});
afterEach(() => scene.close());

describe('pods on the agent', () => {
  it('are sent again if the agent lost them', async () => {
    const id = await scene.rentOne();
    await market.sync();
    host.pods.clear();
    await scene.later(10_000);
    expect(host.pods.get(id)).toMatchObject({ phase: 'running' });
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING' });
  });

  it('are not removed if they are not in the database', async () => {
    const stranger = '22222222-2222-4222-8222-222222222222';
    const id = await scene.rentOne();
    await market.sync();
    const view = host.pods.get(id);
    if (view !== undefined) host.pods.set(stranger, { ...view, id: stranger });
    await scene.later(10_000);
    expect(host.pods.has(stranger)).toBe(true);
    expect(host.calls).not.toContain(`delete ${stranger}`);
  });

  it('fail if the agent refuses to reuse their id', async () => {
    const id = await scene.rentOne();
    await market.sync();
    host.pods.clear();
    host.refusal = new ApiError('conflict', 'its id cannot be used again');
    await scene.later(10_000);
    expect(await scene.pod(id)).toMatchObject({
      status: 'FAILED',
      message: 'its id cannot be used again',
    });
    await scene.remove(id);
    await market.sync();
    expect(await scene.freeGpus()).toBe(2);
  });

  it('become unknown after 60 s without contact, and running after contact', async () => {
    const id = await scene.rentOne();
    await market.sync();
    host.up = false;
    await scene.later(59_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'ready' });
    await scene.later(2_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'unreachable' });
    host.up = true;
    await scene.later(31_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'ready' });
    expect(host.calls).toEqual([`put ${id}`]);
  });

  it('keep the state `rebooting` while their node does not answer', async () => {
    const id = await scene.rentOne();
    await market.sync();
    await scene.call('POST', `/pods/${id}/reboot`, {});
    host.up = false;
    await scene.later(61_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'REBOOT_PENDING', phase: 'unreachable' });
    host.up = true;
    await scene.later(31_000);
    host.change(id, { phase: 'running', reboots_done: 1 });
    await scene.later(1_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'ready' });
  });

  it('become failed when the agent reports a final failure', async () => {
    const id = await scene.rentOne();
    await market.sync();
    host.change(id, { phase: 'failed', reason: 'OOMKilled', message: 'out of memory' });
    await scene.later(10_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'FAILED', ssh_connect_cmd: null });
    expect(await scene.freeGpus()).toBe(1);
    await scene.remove(id);
    await market.sync();
    expect(await scene.freeGpus()).toBe(2);
  });
});

describe('a reboot', () => {
  it('is sent once even if the answer is lost', async () => {
    const id = await scene.rentOne();
    await market.sync();
    host.losesAnswers = true;
    expect((await scene.post(id, 'reboot', {})).body).toMatchObject({ status: 'REBOOT_PENDING' });
    expect((await scene.post(id, 'reboot')).body.error.code).toBe('pod_state_conflict');
    await market.sync();
    host.losesAnswers = false;
    await scene.later(1_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'REBOOT_PENDING', ssh_connect_cmd: null });
    host.change(id, { phase: 'running', reboots_done: 1 });
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING' });
    expect(host.calls).toEqual([`put ${id}`, `reboot ${id} 1`]);
  });

  it('is complete if the agent lost the pod and started the pod again', async () => {
    const id = await scene.rentOne();
    await market.sync();
    await scene.post(id, 'reboot', {});
    host.pods.clear();
    await market.sync();
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING' });
    await scene.post(id, 'reboot', {});
    await market.sync();
    expect(host.calls.at(-1)).toBe(`reboot ${id} 1`);
  });

  it('is rejected before the first start of the pod', async () => {
    const id = await scene.rentOne();
    expect((await scene.post(id, 'reboot', {})).body.error.code).toBe('pod_state_conflict');
  });
});

it('syncs other executors while one executor does not answer', async () => {
  const other = await market.verifiedNode();
  host.up = false;
  await scene.rentOne();
  const id = (await market.rent(account, other.id)).body.id;
  await market.sync();
  expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING' });
});
