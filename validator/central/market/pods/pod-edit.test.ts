import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_TEMPLATE } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';

let scene: PodScene;
let market: PodScene['market'];
let account: PodScene['account'];
let host: PodScene['host'];
let id: string;
beforeEach(async () => {
  scene = await createPodScene();
  ({ market, account, host } = scene);
  id = await scene.running();
});
afterEach(() => scene.close());

describe('PUT /pods/{id}', () => {
  it("makes a private copy of another account’s template, and keeps the pod's resources", async () => {
    const before = host.specs.get(id);
    const edited = await scene.call('PUT', `/pods/${id}`, {
      environment: { A: 'b' },
      name: 'mine',
    });
    expect(edited).toMatchObject({
      status: 200,
      body: {
        name: 'mine',
        is_private: true,
        user_id: account.id,
        environment: { A: 'b' },
        docker_image: 'podwright.local/base',
        docker_image_tag: '1',
      },
    });
    expect(edited.body.id).not.toBe(DEFAULT_TEMPLATE);
    expect(await scene.pod(id)).toMatchObject({ status: 'REBOOT_PENDING', ssh_connect_cmd: null });
    await market.sync();
    expect(host.specs.get(id)).toEqual({
      ...before,
      generation: 2,
      template: 'mine',
      environment: { A: 'b' },
    });
    expect(await scene.pod(id)).toMatchObject({
      status: 'RUNNING',
      template_id: edited.body.id,
      template: { id: edited.body.id, environment: { A: 'b' } },
    });
    expect(await scene.events(id)).toMatchObject([
      {},
      {},
      { sub_event_type: 'pod-reboot.requested', reason: 'user_initiated', detail: 'edit' },
      { sub_event_type: 'pod-reboot.success', to_status: 'RUNNING' },
    ]);
    expect((await scene.call('GET', `/templates/${DEFAULT_TEMPLATE}`)).body.environment).toEqual(
      {},
    );
  });

  it("edits the account's own template in place, even if the request contains the whole template", async () => {
    const own = await scene.template({
      docker_image: 'registry:5000/own/image',
      docker_image_tag: '2',
    });
    const owned = await scene.running({ template_id: own.id });
    const sent = { ...(await scene.pod(owned)).template, startup_commands: 'sleep 5', nonsense: 1 };
    const edited = await scene.call('PUT', `/pods/${owned}`, sent);
    expect(edited.body).toMatchObject({ id: own.id, startup_commands: 'sleep 5' });
    await market.sync();
    expect(host.specs.get(owned)).toMatchObject({
      generation: 2,
      command: ['sleep', '5'],
      image: { reference: 'registry:5000/own/image:2' },
    });
  });

  it("keeps ports that were rented in addition to the template's", async () => {
    const wide = await scene.running({ initial_port_count: 4 });
    await scene.call('PUT', `/pods/${wide}`, { internal_ports: [22, 9000] });
    await market.sync();
    expect(host.specs.get(wide)?.internal_ports).toEqual([22, 9000, 20000, 20001]);
  });

  it('keeps keys that were added since the rental', async () => {
    const key = `${'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI'}Kq6mYB5aC8yR3m9Z0qj2s8w1N4x7u5t6v3b2c1d0e9f other`;
    const added = await scene.call('POST', `/pods/${id}/multiple-ssh-keys`, { public_keys: [key] });
    expect(added.status).toBe(200);
    await market.sync();
    await scene.call('PUT', `/pods/${id}`, { environment: { A: 'b' } });
    await market.sync();
    expect(host.specs.get(id)?.ssh_public_keys).toHaveLength(2);
  });

  it.each<[string, object, number, string]>([
    ['an empty body', {}, 400, 'bad_request'],
    ['only read-only members', { id: NOWHERE, status: 'CREATED' }, 400, 'bad_request'],
    ['a shell line', { startup_commands: 'a && b' }, 400, 'template_invalid'],
    ['a malformed image', { docker_image: 'UPPER' }, 400, 'template_invalid'],
    [
      '65 ports',
      { internal_ports: Array.from({ length: 65 }, (_, n) => n + 1) },
      422,
      'validation_error',
    ],
    ['port 0', { internal_ports: [0] }, 422, 'validation_error'],
  ])('rejects %s and changes nothing', async (_, body, status, code) => {
    const before = await scene.pod(id);
    const templates = (await scene.call('GET', '/templates')).body;
    const refused = await scene.call('PUT', `/pods/${id}`, body);
    expect([refused.status, refused.body.error.code]).toEqual([status, code]);
    expect(await scene.pod(id)).toEqual(before);
    expect((await scene.call('GET', '/templates')).body).toEqual(templates);
  });

  it('rejects more ports than a pod can have', async () => {
    const wide = await scene.running({ initial_port_count: 64 });
    const internal_ports = Array.from({ length: 10 }, (_, n) => n + 100);
    const refused = await scene.call('PUT', `/pods/${wide}`, { internal_ports });
    expect(refused.body.error.code).toBe('template_invalid');
    expect(await scene.pod(wide)).toMatchObject({
      status: 'RUNNING',
      template_id: DEFAULT_TEMPLATE,
    });
  });

  it('requires a running pod without a pending change', async () => {
    expect((await scene.call('PUT', `/pods/${id}`, { name: 'x' })).status).toBe(200);
    const again = await scene.call('PUT', `/pods/${id}`, { name: 'y' });
    expect(again.body.error.code).toBe('pod_state_conflict');
    expect(
      (await scene.call('GET', '/templates')).body.map((row: { name: string }) => row.name),
    ).not.toContain('y');
    await scene.call('DELETE', `/pods/${id}`);
    expect((await scene.call('PUT', `/pods/${id}`, { name: 'z' })).body.error.code).toBe(
      'pod_state_conflict',
    );
  });
});
