import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_TEMPLATE } from '../../../../test/fakes/scenes/market-fixture.ts';
import {
  changing,
  createPodScene,
  type PodScene,
} from '../../../../test/fakes/scenes/pod-scene.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';

let scene: PodScene;
let market: PodScene['market'];
let node: PodScene['node'];
let account: PodScene['account'];
let host: PodScene['host'];
let id: string;
beforeEach(async () => {
  scene = await createPodScene();
  ({ market, node, account, host } = scene);
  id = await scene.running();
});
afterEach(() => scene.close());

describe('PUT /pods/{id}/switch-template', () => {
  const switchTo = (templateId: string) =>
    scene.call('PUT', `/pods/${id}/switch-template`, { template_id: templateId });

  it('runs another template on the same node and GPUs', async () => {
    const own = await scene.template({ docker_image_tag: '3', internal_ports: [22] });
    const gpus = host.specs.get(id)?.gpu_uuids;
    expect(await switchTo(own.id)).toMatchObject({
      status: 200,
      body: { id, status: 'REBOOT_PENDING', template_id: own.id, template: { name: 'own' } },
    });
    await market.sync();
    expect(host.specs.get(id)).toMatchObject({
      image: { reference: 'own/image:3' },
      internal_ports: [22],
      gpu_uuids: gpus,
    });
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', template_id: own.id });
  });

  it('rejects missing templates and private templates of other accounts', async () => {
    const stranger = await market.renter();
    const theirs = await market.call('POST', '/templates', {
      headers: stranger.key,
      body: { name: 'theirs', docker_image: 'x/y' },
    });
    for (const templateId of [theirs.body.id, NOWHERE]) {
      expect(await switchTo(templateId)).toMatchObject({
        status: 404,
        body: { error: { code: 'template_not_found' } },
      });
    }
    expect((await scene.call('PUT', `/pods/${id}/switch-template`, {})).status).toBe(422);
  });

  it('uses a one-time template once, and marks it as unused if the switch fails', async () => {
    const once = await scene.template({ one_time_template: true });
    host.arrives = 'pulling';
    await switchTo(once.id);
    await market.sync();
    host.change(id, { ...changing(host, id, 'failed', { reason: 'ImageAuth' }), phase: 'running' });
    await market.sync();
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', template_id: DEFAULT_TEMPLATE });
    host.arrives = 'running';
    expect((await switchTo(once.id)).status).toBe(200);
    await market.sync();
    const other = await market.rent(account, node.id, { gpu_count: 1, template_id: once.id });
    expect(other.body.error.code).toBe('template_invalid');
    // A switch to another template uses up the pod's former one-time template.
    await switchTo(DEFAULT_TEMPLATE);
    await market.sync();
    expect((await scene.call('GET', `/templates/${once.id}`)).status).toBe(404);
  });
});

describe('PUT /templates/{id}', () => {
  it("changes the owner's pods at their next reboot", async () => {
    const own = await scene.template();
    const owned = await scene.running({ template_id: own.id });
    const row = (await scene.call('GET', `/templates/${own.id}`)).body;
    await market.clock.advance(1_000);
    const put = await scene.call('PUT', `/templates/${own.id}`, {
      ...row,
      environment: { NEW: '1' },
    });
    expect(put.status).toBe(200);
    await market.sync();
    expect(host.specs.get(owned)).toMatchObject({ generation: 1, environment: {} });
    await scene.call('POST', `/pods/${owned}/reboot`, {});
    await market.sync();
    expect(host.specs.get(owned)).toMatchObject({ generation: 2, environment: { NEW: '1' } });
    expect(await scene.pod(owned)).toMatchObject({ template: { environment: { NEW: '1' } } });
    // The template has not changed since then, so the same container restarts.
    await scene.call('POST', `/pods/${owned}/reboot`, {});
    await market.sync();
    expect(host.specs.get(owned)?.generation).toBe(2);
    expect(host.calls.at(-1)).toBe(`reboot ${owned} 1`);
  });

  it('does not change pods of other accounts', async () => {
    const stranger = await market.renter();
    const headers = stranger.key;
    const body = { name: 'open', docker_image: 'x/y', is_private: false };
    const theirs = (await market.call('POST', '/templates', { headers, body })).body;
    const mine = await scene.running({ template_id: theirs.id });
    await market.clock.advance(1_000);
    const change = { startup_commands: 'steal' };
    await market.call('PUT', `/templates/${theirs.id}`, { headers, body: change });
    await scene.call('POST', `/pods/${mine}/reboot`, {});
    await market.sync();
    expect(host.specs.get(mine)?.generation).toBe(1);
    host.change(mine, { phase: 'running', reboots_done: 1 });
    await market.sync();
    // An edit is based on the content that the pod runs, not on the present template.
    const edited = await scene.call('PUT', `/pods/${mine}`, { environment: { A: 'b' } });
    expect(edited.body).toMatchObject({ startup_commands: '', user_id: account.id });
  });
});
