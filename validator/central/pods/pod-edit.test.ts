import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PodChange, PodView } from '#shared/agent-api/pod.ts';
import { naiveUtc } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { TestAccount } from '../../../test/fakes/central-fixture.ts';
import type { FakeHost } from '../../../test/fakes/fake-agents.ts';
import {
  type AddedNode,
  createTestMarket,
  DEFAULT_TEMPLATE,
  type TestMarket,
} from '../../../test/fakes/market-fixture.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';
const HOUR_MS = 3_600_000;
const OLD = 'a'.repeat(64);

let market: TestMarket;
let node: AddedNode;
let account: TestAccount;
let host: FakeHost;
let id: string;

beforeEach(async () => {
  market = await createTestMarket();
  node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  account = await market.renter();
  host = market.agents.host(node.id);
  id = await running();
});
afterEach(() => market.close());

function call(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object) {
  const sent = body === undefined ? {} : { body: body as Record<string, unknown> };
  return market.call(method, path, { headers: account.key, ...sent });
}

async function running(body: Record<string, unknown> = {}): Promise<string> {
  const rented = await market.rent(account, node.id, { gpu_count: 1, ...body });
  expect(rented.status).toBe(200);
  await market.sync();
  return rented.body.id;
}

const pod = async (of = id) => (await call('GET', `/pods/${of}`)).body;
const events = async () => (await call('GET', `/pods/${id}/events`)).body;
const lastEvent = async () => (await events()).at(-1);

async function template(body: Record<string, unknown> = {}) {
  const made = await call('POST', '/templates', {
    name: 'own',
    docker_image: 'own/image',
    ...body,
  });
  expect(made.status).toBe(200);
  return made.body;
}

/** What an agent says of a change to the newest generation it was sent. */
function changing(stage: PodChange['stage'], cause: Partial<PodChange> = {}): Partial<PodView> {
  const generation = host.specs.get(id)?.generation ?? 0;
  const change = { generation, stage, reason: null, message: '', ...cause };
  return { generation, observed_generation: generation - 1, container_id: OLD, change };
}

describe('PUT /pods/{id}', () => {
  it('copies a foreign template privately, and runs the change with what the pod has', async () => {
    const before = host.specs.get(id);
    const edited = await call('PUT', `/pods/${id}`, { environment: { A: 'b' }, name: 'mine' });
    expect(edited).toMatchObject({
      status: 200,
      body: {
        ...{ name: 'mine', is_private: true, user_id: account.id, environment: { A: 'b' } },
        ...{ docker_image: 'podwright.local/base', docker_image_tag: '1' },
      },
    });
    expect(edited.body.id).not.toBe(DEFAULT_TEMPLATE);
    expect(await pod()).toMatchObject({ status: 'REBOOT_PENDING', ssh_connect_cmd: null });
    await market.sync();
    expect(host.specs.get(id)).toEqual({ ...before, generation: 2, environment: { A: 'b' } });
    expect(await pod()).toMatchObject({
      ...{ status: 'RUNNING', template_id: edited.body.id },
      template: { id: edited.body.id, environment: { A: 'b' } },
    });
    expect(await events()).toMatchObject([
      {},
      {},
      { sub_event_type: 'pod-reboot.requested', reason: 'user_initiated', detail: 'edit' },
      { sub_event_type: 'pod-reboot.success', to_status: 'RUNNING' },
    ]);
    expect((await call('GET', `/templates/${DEFAULT_TEMPLATE}`)).body.environment).toEqual({});
  });

  it("changes the account's own template in place, its row sent back whole", async () => {
    const own = await template({ docker_image: 'registry:5000/own/image', docker_image_tag: '2' });
    const owned = await running({ template_id: own.id });
    const sent = { ...(await pod(owned)).template, startup_commands: 'sleep 5', nonsense: 1 };
    const edited = await call('PUT', `/pods/${owned}`, sent);
    expect(edited.body).toMatchObject({ id: own.id, startup_commands: 'sleep 5' });
    await market.sync();
    expect(host.specs.get(owned)).toMatchObject({
      ...{ generation: 2, command: ['sleep', '5'] },
      image: { reference: 'registry:5000/own/image:2' },
    });
  });

  it('keeps the ports that were rented beyond the template', async () => {
    const wide = await running({ initial_port_count: 4 });
    await call('PUT', `/pods/${wide}`, { internal_ports: [22, 9000] });
    await market.sync();
    expect(host.specs.get(wide)?.internal_ports).toEqual([22, 9000, 20000, 20001]);
  });

  it('keeps keys that were added since', async () => {
    const key = `${'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI'}Kq6mYB5aC8yR3m9Z0qj2s8w1N4x7u5t6v3b2c1d0e9f other`;
    const added = await call('POST', `/pods/${id}/multiple-ssh-keys`, { public_keys: [key] });
    expect(added.status).toBe(200);
    await market.sync();
    await call('PUT', `/pods/${id}`, { environment: { A: 'b' } });
    await market.sync();
    expect(host.specs.get(id)?.ssh_public_keys).toHaveLength(2);
  });

  it.each<[string, object, number, string]>([
    ['nothing', {}, 400, 'bad_request'],
    ['read-only members alone', { id: NOWHERE, status: 'CREATED' }, 400, 'bad_request'],
    ['a shell line', { startup_commands: 'a && b' }, 400, 'template_invalid'],
    ['no image', { docker_image: 'UPPER' }, 400, 'template_invalid'],
    [
      '65 ports',
      { internal_ports: Array.from({ length: 65 }, (_, n) => n + 1) },
      422,
      'validation_error',
    ],
    ['port 0', { internal_ports: [0] }, 422, 'validation_error'],
  ])('refuses %s and changes nothing', async (_, body, status, code) => {
    const before = await pod();
    const templates = (await call('GET', '/templates')).body;
    const refused = await call('PUT', `/pods/${id}`, body);
    expect([refused.status, refused.body.error.code]).toEqual([status, code]);
    expect(await pod()).toEqual(before);
    expect((await call('GET', '/templates')).body).toEqual(templates);
  });

  it('refuses more ports than a pod can have together with those rented', async () => {
    const wide = await running({ initial_port_count: 64 });
    const internal_ports = Array.from({ length: 10 }, (_, n) => n + 100);
    const refused = await call('PUT', `/pods/${wide}`, { internal_ports });
    expect(refused.body.error.code).toBe('template_invalid');
    expect(await pod(wide)).toMatchObject({ status: 'RUNNING', template_id: DEFAULT_TEMPLATE });
  });

  it('is for pods that run, one change at a time', async () => {
    expect((await call('PUT', `/pods/${id}`, { name: 'x' })).status).toBe(200);
    const again = await call('PUT', `/pods/${id}`, { name: 'y' });
    expect(again.body.error.code).toBe('pod_state_conflict');
    expect(
      (await call('GET', '/templates')).body.map((row: { name: string }) => row.name),
    ).not.toContain('y');
    await call('DELETE', `/pods/${id}`);
    expect((await call('PUT', `/pods/${id}`, { name: 'z' })).body.error.code).toBe(
      'pod_state_conflict',
    );
  });
});

/** The node takes a change and is busy with it until told otherwise. */
async function change(body: object = { docker_image: 'gone/gone' }) {
  host.arrives = 'pulling';
  expect((await call('PUT', `/pods/${id}`, body)).status).toBe(200);
  await market.sync();
  expect(await pod()).toMatchObject({ status: 'REBOOT_PENDING' });
  host.arrives = 'running';
}

it('shows how far a change is', async () => {
  await change();
  const cause = { reason: 'ImageRateLimited', message: 'slow down' } as const;
  host.change(id, { ...changing('preparing', cause), phase: 'running' });
  await market.sync();
  expect(await pod()).toMatchObject({
    ...{ status: 'REBOOT_PENDING', phase: 'pulling' },
    ...{ reason_code: 'image_pull_failed', message: 'slow down' },
  });
  host.change(id, { ...changing('replacing'), phase: 'starting' });
  await market.sync();
  expect(await pod()).toMatchObject({ status: 'REBOOT_PENDING', phase: 'rebooting' });
  host.change(id, { ...changing('settling'), phase: 'running' });
  await market.sync();
  expect(await pod()).toMatchObject({ status: 'REBOOT_PENDING', reason_code: null });
  host.change(id, { change: null, observed_generation: 2 });
  await market.sync();
  expect(await pod()).toMatchObject({ status: 'RUNNING', phase: 'ready' });
});

describe('a change that the node gives up', () => {
  const failed = { reason: 'ImageNotFound', message: 'no such image' } as const;

  it('leaves the pod as it was, and says why', async () => {
    const before = await pod();
    await change();
    host.change(id, { ...changing('failed', failed), phase: 'running' });
    await market.sync();
    expect(await pod()).toMatchObject({
      ...{ status: 'RUNNING', phase: 'ready', template: before.template },
      ...{ template_id: before.template_id, ports_mapping: before.ports_mapping },
      ...{ reason_code: 'image_pull_failed', message: 'no such image' },
    });
    expect(await lastEvent()).toMatchObject({
      ...{ sub_event_type: 'pod-reboot.failed', to_status: 'RUNNING' },
      ...{ reason: 'image_pull_failed', error: 'no such image' },
    });
    // The node is left in peace, and a lost pod would come back as it was.
    const calls = host.calls.length;
    await market.sync();
    expect(host.calls).toHaveLength(calls);
    host.pods.delete(id);
    await market.clock.advance(10_000);
    await market.sync();
    expect(host.specs.get(id)).toMatchObject({
      ...{ generation: 2, image: { reference: 'podwright.local/base:1' } },
    });
  });

  it('counts as rebooting until the old container runs again', async () => {
    await change();
    host.change(id, { ...changing('failed', { reason: 'StartFailed' }), phase: 'starting' });
    await market.sync();
    expect(await pod()).toMatchObject({ status: 'REBOOT_PENDING' });
    host.change(id, { phase: 'failed', reason: 'StartFailed', message: 'neither' });
    await market.sync();
    expect(await pod()).toMatchObject({ status: 'REBOOT_FAILED', template_id: DEFAULT_TEMPLATE });
    expect(await lastEvent()).toMatchObject({ sub_event_type: 'pod-reboot.failed' });
  });

  it('leaves the pod’s own template as it was, too, unless it was changed since', async () => {
    const own = await template();
    const path = `/templates/${own.id}`;
    id = await running({ template_id: own.id });
    await change();
    expect((await call('GET', path)).body.docker_image).toBe('gone/gone');
    host.change(id, { ...changing('failed', failed), phase: 'running' });
    await market.sync();
    expect((await call('GET', path)).body).toMatchObject({
      docker_image: 'own/image',
      name: 'own',
    });
    await call('PUT', `/pods/${id}`, { environment: { A: 'b' } });
    await market.sync();
    expect(host.specs.get(id)).toMatchObject({
      ...{ generation: 3, environment: { A: 'b' } },
      image: { reference: expect.stringMatching(/^own.image/) },
    });

    await change();
    await market.clock.advance(1);
    await call('PUT', path, { name: 'renamed' });
    host.change(id, { ...changing('failed', failed), phase: 'running' });
    await market.sync();
    expect((await call('GET', path)).body).toMatchObject({
      ...{ docker_image: 'gone/gone', name: 'renamed' },
    });
  });

  it('is not told of any more after a reboot', async () => {
    await change();
    host.change(id, { ...changing('failed', failed), phase: 'running' });
    await market.sync();
    expect((await call('POST', `/pods/${id}/reboot`, {})).status).toBe(200);
    await market.sync();
    host.change(id, { reboots_done: 1, phase: 'running' });
    await market.sync();
    expect(await pod()).toMatchObject({ status: 'RUNNING', reason_code: null });
    await market.clock.advance(60_000);
    await market.sync();
    expect(await pod()).toMatchObject({ status: 'RUNNING', reason_code: null });
    expect(await lastEvent()).toMatchObject({
      ...{ sub_event_type: 'pod-reboot.success', reason: null },
    });
  });

  it('can be followed by another one', async () => {
    await change();
    host.change(id, { ...changing('failed', failed), phase: 'running' });
    await market.sync();
    await call('PUT', `/pods/${id}`, { docker_image: 'good/image' });
    await market.sync();
    expect(host.specs.get(id)).toMatchObject({ generation: 3 });
    expect(await pod()).toMatchObject({ status: 'RUNNING', reason_code: null, message: null });
  });

  it('does the same where the node refuses it at once', async () => {
    const before = await pod();
    host.refusal = new ApiError('conflict', 'PortPoolExhausted: no port is free');
    await call('PUT', `/pods/${id}`, { internal_ports: [1, 2, 3] });
    await market.sync();
    expect(await pod()).toMatchObject({ status: 'RUNNING', template: before.template });
    expect(await lastEvent()).toMatchObject({
      ...{ sub_event_type: 'pod-reboot.failed', reason: 'start_failed' },
      error: expect.stringContaining('PortPoolExhausted'),
    });
    host.refusal = null;
    const calls = host.calls.length;
    await market.sync();
    expect(host.calls).toHaveLength(calls);
    await call('PUT', `/pods/${id}`, { internal_ports: [1] });
    await market.sync();
    expect(host.specs.get(id)).toMatchObject({ generation: 2, internal_ports: [1] });
  });
});

describe('PUT /pods/{id}/switch-template', () => {
  const switchTo = (templateId: string) =>
    call('PUT', `/pods/${id}/switch-template`, { template_id: templateId });

  it('runs another template in the same place', async () => {
    const own = await template({ docker_image_tag: '3', internal_ports: [22] });
    const gpus = host.specs.get(id)?.gpu_uuids;
    expect(await switchTo(own.id)).toMatchObject({
      status: 200,
      body: { id, status: 'REBOOT_PENDING', template_id: own.id, template: { name: 'own' } },
    });
    await market.sync();
    expect(host.specs.get(id)).toMatchObject({
      ...{ image: { reference: 'own/image:3' }, internal_ports: [22], gpu_uuids: gpus },
    });
    expect(await pod()).toMatchObject({ status: 'RUNNING', template_id: own.id });
  });

  it('knows no template that is foreign, private or absent', async () => {
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
    expect((await call('PUT', `/pods/${id}/switch-template`, {})).status).toBe(422);
  });

  it('uses a template for one use once, and gives it back when the switch fails', async () => {
    const once = await template({ one_time_template: true });
    host.arrives = 'pulling';
    await switchTo(once.id);
    await market.sync();
    host.change(id, { ...changing('failed', { reason: 'ImageAuth' }), phase: 'running' });
    await market.sync();
    expect(await pod()).toMatchObject({ status: 'RUNNING', template_id: DEFAULT_TEMPLATE });
    host.arrives = 'running';
    expect((await switchTo(once.id)).status).toBe(200);
    await market.sync();
    const other = await market.rent(account, node.id, { gpu_count: 1, template_id: once.id });
    expect(other.body.error.code).toBe('template_invalid');
    // Left behind, it is done with.
    await switchTo(DEFAULT_TEMPLATE);
    await market.sync();
    expect((await call('GET', `/templates/${once.id}`)).status).toBe(404);
  });
});

describe('PUT /templates/{id}', () => {
  it("reaches the owner's pods at their next reboot", async () => {
    const own = await template();
    const owned = await running({ template_id: own.id });
    const row = (await call('GET', `/templates/${own.id}`)).body;
    await market.clock.advance(1_000);
    const put = await call('PUT', `/templates/${own.id}`, { ...row, environment: { NEW: '1' } });
    expect(put.status).toBe(200);
    await market.sync();
    expect(host.specs.get(owned)).toMatchObject({ generation: 1, environment: {} });
    await call('POST', `/pods/${owned}/reboot`, {});
    await market.sync();
    expect(host.specs.get(owned)).toMatchObject({ generation: 2, environment: { NEW: '1' } });
    expect(await pod(owned)).toMatchObject({ template: { environment: { NEW: '1' } } });
    // Nothing new since: the same container again.
    await call('POST', `/pods/${owned}/reboot`, {});
    await market.sync();
    expect(host.specs.get(owned)?.generation).toBe(2);
    expect(host.calls.at(-1)).toBe(`reboot ${owned} 1`);
  });

  it('reaches no pod of another account', async () => {
    const stranger = await market.renter();
    const headers = stranger.key;
    const body = { name: 'open', docker_image: 'x/y', is_private: false };
    const theirs = (await market.call('POST', '/templates', { headers, body })).body;
    const mine = await running({ template_id: theirs.id });
    await market.clock.advance(1_000);
    const change = { startup_commands: 'steal' };
    await market.call('PUT', `/templates/${theirs.id}`, { headers, body: change });
    await call('POST', `/pods/${mine}/reboot`, {});
    await market.sync();
    expect(host.specs.get(mine)?.generation).toBe(1);
    host.change(mine, { phase: 'running', reboots_done: 1 });
    await market.sync();
    // An edit builds upon what the pod runs, not upon what became of its template.
    const edited = await call('PUT', `/pods/${mine}`, { environment: { A: 'b' } });
    expect(edited.body).toMatchObject({ startup_commands: '', user_id: account.id });
  });
});

describe('PATCH /pods/{id}', () => {
  it('keeps name and limits without touching the node', async () => {
    const calls = host.calls.length;
    const body = { pod_name: 'new', max_spend_usd: 12.5, idle_shutdown_minutes: 30 };
    expect(await call('PATCH', `/pods/${id}`, body)).toMatchObject({ status: 200, body });
    expect(await pod()).toMatchObject({ ...body, status: 'RUNNING' });
    await call('PATCH', `/pods/${id}`, { max_spend_usd: null });
    expect(await pod()).toMatchObject({ ...body, max_spend_usd: null });
    await market.sync();
    expect(host.calls).toHaveLength(calls);
  });

  it('counts hours from the creation, as a scheduled removal', async () => {
    const created = (await market.ports.db.selectFrom('pods').selectAll().executeTakeFirstOrThrow())
      .created_at;
    await market.clock.advance(2 * HOUR_MS);
    const patched = await call('PATCH', `/pods/${id}`, { termination_hours: 5 });
    expect(patched.body).toMatchObject({
      termination_hours: 5,
      removal_scheduled_at: naiveUtc(created + 5 * HOUR_MS),
    });
    const late = await call('PATCH', `/pods/${id}`, { termination_hours: 1.5 });
    expect(late.body.error.code).toBe('ttl_invalid');
    const cleared = await call('PATCH', `/pods/${id}`, { termination_hours: null });
    expect(cleared.body).toMatchObject({ termination_hours: null, removal_scheduled_at: null });
    await call('PATCH', `/pods/${id}`, { termination_hours: 5 });
    await market.clock.advance(3 * HOUR_MS);
    await market.sync();
    expect((await call('GET', '/pods')).body).toEqual([]);
  });

  it.each<[object, number, string]>([
    [{}, 400, 'bad_request'],
    [{ pod_name: null, unknown: 1 }, 400, 'bad_request'],
    [{ termination_hours: 721 }, 400, 'ttl_invalid'],
    [{ termination_hours: '5' }, 422, 'validation_error'],
    [{ max_spend_usd: -1 }, 422, 'validation_error'],
    [{ idle_shutdown_minutes: 0.5 }, 422, 'validation_error'],
    [{ pod_name: '' }, 422, 'validation_error'],
  ])('refuses %j', async (body, status, code) => {
    const refused = await call('PATCH', `/pods/${id}`, body);
    expect([refused.status, refused.body.error.code]).toEqual([status, code]);
  });
});

it('lets a pod be removed in the middle of a change', async () => {
  host.arrives = 'pulling';
  const once = await template({ one_time_template: true });
  await call('PUT', `/pods/${id}/switch-template`, { template_id: once.id });
  await market.sync();
  expect((await call('DELETE', `/pods/${id}`)).body.status).toBe('DELETING');
  await market.sync();
  expect((await pod()).error.code).toBe('pod_not_found');
  expect((await call('GET', `/templates/${once.id}`)).status).toBe(404);
});
