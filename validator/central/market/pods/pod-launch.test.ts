import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '#shared/runtime/errors.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';

let scene: PodScene;
let market: PodScene['market'];
let host: PodScene['host'];
beforeEach(async () => {
  scene = await createPodScene();
  ({ market, host } = scene);
});
afterEach(() => scene.close());

describe('a launch', () => {
  it("counts as running once the image's own SSH server answers", async () => {
    host.arrives = 'starting';
    const id = await scene.rentOne();
    await market.sync();
    const login = { type: 'SshReady', reason: '', message: '', last_transition_ms: 0 } as const;
    host.change(id, { phase: 'running', conditions: [{ ...login, status: false }] });
    await scene.later(1_000);
    expect((await scene.pod(id)).status).toBe('PENDING');
    host.change(id, { conditions: [{ ...login, status: true }] });
    await scene.later(1_000);
    expect((await scene.pod(id)).status).toBe('RUNNING');
  });

  it('is sent once an agent that was down answers', async () => {
    host.up = false;
    const id = await scene.rentOne();
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ status: 'PENDING', phase: 'queued' });
    host.up = true;
    await scene.later(1_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING' });
    expect(host.specs.get(id)).toMatchObject({ generation: 1, internal_ports: [22, 8000] });
    expect(host.specs.get(id)?.gpu_uuids).toHaveLength(1);
  });

  it('is not repeated after a lost answer', async () => {
    host.losesAnswers = true;
    const id = await scene.rentOne();
    await market.sync();
    host.losesAnswers = false;
    await scene.later(1_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING' });
    expect(host.calls).toEqual([`put ${id}`]);
  });

  it('shows its progress', async () => {
    host.arrives = 'pulling';
    const id = await scene.rentOne();
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ status: 'PENDING', phase: 'pulling' });
    host.change(id, { phase: 'backoff', reason: 'ImageRateLimited', message: 'too many pulls' });
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({
      phase: 'pulling',
      reason_code: 'image_pull_failed',
      message: 'too many pulls',
      executor_status: { logs: ['too many pulls'] },
    });
    host.change(id, { phase: 'starting', reason: null, message: '' });
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ phase: 'starting', reason_code: null });
    host.change(id, { phase: 'running' });
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'ready' });
  });

  it('releases GPU and hold at once if the launch fails, and is then listed for 180 s', async () => {
    host.arrives = 'failed';
    const id = await scene.rentOne();
    expect(await scene.held()).toBe(0.55);
    host.removesAtOnce = false;
    await market.sync();
    host.change(id, { reason: 'ImageNotFound', message: 'no such image' });
    const failed = await scene.pod(id);
    expect(failed).toMatchObject({ status: 'CREATION_FAILED', ssh_connect_cmd: null });
    expect(await scene.freeGpus()).toBe(2);
    expect(await scene.held()).toBe(0);

    await market.sync();
    expect(host.calls).toEqual([`put ${id}`, `delete ${id}`]);
    host.pods.clear();
    await scene.later(179_000);
    await market.sync();
    expect((await scene.call('GET', '/pods')).body).toHaveLength(1);
    await scene.later(1_001);
    expect((await scene.call('GET', '/pods')).body).toEqual([]);
    expect((await scene.pod(id)).error.code).toBe('pod_not_found');
    expect((await scene.remove(id)).body.error.code).toBe('pod_not_found');
    const events = (await scene.call('GET', `/pods/${id}/events`)).body;
    expect(events.at(-1)).toMatchObject({ sub_event_type: 'pod-create.failed' });
  });

  it("fails with the agent's message if the agent refuses the pod, and is not repeated", async () => {
    host.refusal = new ApiError('spec_refused', 'privileged is not allowed');
    const id = await scene.rentOne();
    await market.sync();
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({
      status: 'CREATION_FAILED',
      reason_code: 'start_failed',
      message: 'privileged is not allowed',
    });
    expect(host.calls.filter((call) => call.startsWith('put'))).toHaveLength(1);
  });

  it('is retried while the GPU is in use, and fails after ten minutes', async () => {
    host.refusal = new ApiError('gpu_unavailable', 'still draining');
    const id = await scene.rentOne();
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ status: 'PENDING' });
    const puts = () => host.calls.filter((call) => call.startsWith('put')).length;
    await scene.later(300);
    expect(puts()).toBe(1);
    await scene.later(1_700);
    expect(puts()).toBe(2);
    await scene.later(600_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'CREATION_FAILED' });
    await scene.later(2_000);
    expect(await scene.freeGpus()).toBe(2);
  });

  it('keeps its GPU reserved while the pod may be on an agent that does not answer', async () => {
    host.up = false;
    const id = await scene.rentOne();
    await scene.later(600_000);
    await scene.later(31_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'CREATION_FAILED' });
    expect(await scene.freeGpus()).toBe(1);
    expect(await scene.held()).toBe(0);
    host.up = true;
    await scene.later(31_000);
    expect(await scene.freeGpus()).toBe(2);
  });
});
