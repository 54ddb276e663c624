import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '#shared/runtime/errors.ts';
import { DEFAULT_TEMPLATE } from '../../../../test/fakes/scenes/market-fixture.ts';
import {
  changing,
  createPodScene,
  type PodScene,
} from '../../../../test/fakes/scenes/pod-scene.ts';

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

/** Requests a change. The node accepts the change and works on it until the test ends it. */
async function change(body: object = { docker_image: 'gone/gone' }) {
  host.arrives = 'pulling';
  expect((await scene.call('PUT', `/pods/${id}`, body)).status).toBe(200);
  await market.sync();
  expect(await scene.pod(id)).toMatchObject({ status: 'REBOOT_PENDING' });
  host.arrives = 'running';
}

it('shows the progress of a change', async () => {
  await change();
  const cause = { reason: 'ImageRateLimited', message: 'slow down' } as const;
  host.change(id, { ...changing(host, id, 'preparing', cause), phase: 'running' });
  await market.sync();
  expect(await scene.pod(id)).toMatchObject({
    status: 'REBOOT_PENDING',
    phase: 'pulling',
    reason_code: 'image_pull_failed',
    message: 'slow down',
  });
  host.change(id, { ...changing(host, id, 'replacing'), phase: 'starting' });
  await market.sync();
  expect(await scene.pod(id)).toMatchObject({ status: 'REBOOT_PENDING', phase: 'rebooting' });
  host.change(id, { ...changing(host, id, 'settling'), phase: 'running' });
  await market.sync();
  expect(await scene.pod(id)).toMatchObject({ status: 'REBOOT_PENDING', reason_code: null });
  host.change(id, { change: null, observed_generation: 2 });
  await market.sync();
  expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'ready' });
});

describe('a change that fails on the node', () => {
  const failed = { reason: 'ImageNotFound', message: 'no such image' } as const;

  it('leaves the pod unchanged and shows the reason', async () => {
    const before = await scene.pod(id);
    await change();
    host.change(id, { ...changing(host, id, 'failed', failed), phase: 'running' });
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({
      status: 'RUNNING',
      phase: 'ready',
      template: before.template,
      template_id: before.template_id,
      ports_mapping: before.ports_mapping,
      reason_code: 'image_pull_failed',
      message: 'no such image',
    });
    expect((await scene.events(id)).at(-1)).toMatchObject({
      sub_event_type: 'pod-reboot.failed',
      to_status: 'RUNNING',
      reason: 'image_pull_failed',
      error: 'no such image',
    });
    // No further change is sent, and the node would recreate a lost pod with its former content.
    const calls = host.calls.length;
    await market.sync();
    expect(host.calls).toHaveLength(calls);
    host.pods.delete(id);
    await market.clock.advance(10_000);
    await market.sync();
    expect(host.specs.get(id)).toMatchObject({
      generation: 2,
      image: { reference: 'podwright.local/base:1' },
    });
  });

  it('counts as rebooting until the former container runs again', async () => {
    await change();
    host.change(id, {
      ...changing(host, id, 'failed', { reason: 'StartFailed' }),
      phase: 'starting',
    });
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ status: 'REBOOT_PENDING' });
    host.change(id, { phase: 'failed', reason: 'StartFailed', message: 'neither' });
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({
      status: 'REBOOT_FAILED',
      template_id: DEFAULT_TEMPLATE,
    });
    expect((await scene.events(id)).at(-1)).toMatchObject({ sub_event_type: 'pod-reboot.failed' });
  });

  it("reverts the account's own template, unless the template was changed again meanwhile", async () => {
    const own = await scene.template();
    const path = `/templates/${own.id}`;
    id = await scene.running({ template_id: own.id });
    await change();
    expect((await scene.call('GET', path)).body.docker_image).toBe('gone/gone');
    host.change(id, { ...changing(host, id, 'failed', failed), phase: 'running' });
    await market.sync();
    expect((await scene.call('GET', path)).body).toMatchObject({
      docker_image: 'own/image',
      name: 'own',
    });
    await scene.call('PUT', `/pods/${id}`, { environment: { A: 'b' } });
    await market.sync();
    expect(host.specs.get(id)).toMatchObject({
      generation: 3,
      environment: { A: 'b' },
      image: { reference: expect.stringMatching(/^own.image/) },
    });

    await change();
    await market.clock.advance(1);
    await scene.call('PUT', path, { name: 'renamed' });
    host.change(id, { ...changing(host, id, 'failed', failed), phase: 'running' });
    await market.sync();
    expect((await scene.call('GET', path)).body).toMatchObject({
      docker_image: 'gone/gone',
      name: 'renamed',
    });
  });

  it('is no longer shown after a reboot of the pod', async () => {
    await change();
    host.change(id, { ...changing(host, id, 'failed', failed), phase: 'running' });
    await market.sync();
    expect((await scene.call('POST', `/pods/${id}/reboot`, {})).status).toBe(200);
    await market.sync();
    host.change(id, { reboots_done: 1, phase: 'running' });
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', reason_code: null });
    await market.clock.advance(60_000);
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', reason_code: null });
    expect((await scene.events(id)).at(-1)).toMatchObject({
      sub_event_type: 'pod-reboot.success',
      reason: null,
    });
  });

  it('can be followed by another change', async () => {
    await change();
    host.change(id, { ...changing(host, id, 'failed', failed), phase: 'running' });
    await market.sync();
    await scene.call('PUT', `/pods/${id}`, { docker_image: 'good/image' });
    await market.sync();
    expect(host.specs.get(id)).toMatchObject({ generation: 3 });
    expect(await scene.pod(id)).toMatchObject({
      status: 'RUNNING',
      reason_code: null,
      message: null,
    });
  });

  it('is also reverted if the node refuses the change at once', async () => {
    const before = await scene.pod(id);
    host.refusal = new ApiError('conflict', 'PortPoolExhausted: no port is free');
    await scene.call('PUT', `/pods/${id}`, { internal_ports: [1, 2, 3] });
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', template: before.template });
    expect((await scene.events(id)).at(-1)).toMatchObject({
      sub_event_type: 'pod-reboot.failed',
      reason: 'start_failed',
      error: expect.stringContaining('PortPoolExhausted'),
    });
    host.refusal = null;
    const calls = host.calls.length;
    await market.sync();
    expect(host.calls).toHaveLength(calls);
    await scene.call('PUT', `/pods/${id}`, { internal_ports: [1] });
    await market.sync();
    expect(host.specs.get(id)).toMatchObject({ generation: 2, internal_ports: [1] });
  });
});

it('allows a removal while the change runs', async () => {
  host.arrives = 'pulling';
  const once = await scene.template({ one_time_template: true });
  await scene.call('PUT', `/pods/${id}/switch-template`, { template_id: once.id });
  await market.sync();
  expect((await scene.call('DELETE', `/pods/${id}`)).body.status).toBe('DELETING');
  await market.sync();
  expect((await scene.pod(id)).error.code).toBe('pod_not_found');
  expect((await scene.call('GET', `/templates/${once.id}`)).status).toBe(404);
});
