import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { naiveUtc } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { TestAccount } from '../../../test/fakes/central-fixture.ts';
import type { FakeHost } from '../../../test/fakes/fake-agents.ts';
import {
  type AddedNode,
  createTestMarket,
  type TestMarket,
} from '../../../test/fakes/market-fixture.ts';
import { createCentral } from '../app.ts';

let market: TestMarket;
let node: AddedNode;
let account: TestAccount;
let host: FakeHost;

beforeEach(async () => {
  market = await createTestMarket();
  node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  account = await market.renter();
  host = market.agents.host(node.id);
});
afterEach(() => market.close());

async function rentOne(body: Record<string, unknown> = {}): Promise<string> {
  return (await market.rent(account, node.id, { gpu_count: 1, ...body })).body.id;
}

async function pod(id: string) {
  return (await market.call('GET', `/pods/${id}`, { headers: account.key })).body;
}

function post(id: string, action: string, body?: Record<string, unknown>) {
  const headers = account.key;
  return market.call('POST', `/pods/${id}/${action}`, { headers, ...(body ? { body } : {}) });
}

function remove(id: string) {
  return market.call('DELETE', `/pods/${id}`, { headers: account.key });
}

async function freeGpus(): Promise<number> {
  const slots = await market.ports.db.selectFrom('gpu_slots').select('pod_id').execute();
  return slots.filter((slot) => slot.pod_id === null).length;
}

async function held(): Promise<number> {
  return (await market.call('GET', '/users/me', { headers: account.key })).body.held;
}

/** Lets `ms` go by and does what is then due. */
async function later(ms: number): Promise<void> {
  await market.clock.advance(ms);
  await market.sync();
}

describe('a launch', () => {
  it('counts as running once the SSH server that the image brings has spoken', async () => {
    host.arrives = 'starting';
    const id = await rentOne();
    await market.sync();
    const login = { type: 'SshReady', reason: '', message: '', last_transition_ms: 0 } as const;
    host.change(id, { phase: 'running', conditions: [{ ...login, status: false }] });
    await later(1_000);
    expect((await pod(id)).status).toBe('PENDING');
    host.change(id, { conditions: [{ ...login, status: true }] });
    await later(1_000);
    expect((await pod(id)).status).toBe('RUNNING');
  });

  it('waits for an agent that is down, and sends the spec once it is there', async () => {
    host.up = false;
    const id = await rentOne();
    await market.sync();
    expect(await pod(id)).toMatchObject({ status: 'PENDING', phase: 'queued' });
    host.up = true;
    await later(1_000);
    expect(await pod(id)).toMatchObject({ status: 'RUNNING' });
    expect(host.specs.get(id)).toMatchObject({ generation: 1, internal_ports: [22, 8000] });
    expect(host.specs.get(id)?.gpu_uuids).toHaveLength(1);
  });

  it('is not repeated for an answer that was lost', async () => {
    host.losesAnswers = true;
    const id = await rentOne();
    await market.sync();
    host.losesAnswers = false;
    await later(1_000);
    expect(await pod(id)).toMatchObject({ status: 'RUNNING' });
    expect(host.calls).toEqual([`put ${id}`]);
  });

  it('shows how far it is', async () => {
    host.arrives = 'pulling';
    const id = await rentOne();
    await market.sync();
    expect(await pod(id)).toMatchObject({ status: 'PENDING', phase: 'pulling' });
    host.change(id, { phase: 'backoff', reason: 'ImageRateLimited', message: 'too many pulls' });
    await market.sync();
    expect(await pod(id)).toMatchObject({
      phase: 'pulling',
      reason_code: 'image_pull_failed',
      message: 'too many pulls',
    });
    host.change(id, { phase: 'starting', reason: null, message: '' });
    await market.sync();
    expect(await pod(id)).toMatchObject({ phase: 'starting', reason_code: null });
    host.change(id, { phase: 'running' });
    await market.sync();
    expect(await pod(id)).toMatchObject({ status: 'RUNNING', phase: 'ready' });
  });

  it('that fails frees GPU and hold at once, is shown 180 s, then gone', async () => {
    host.arrives = 'failed';
    const id = await rentOne();
    expect(await held()).toBe(0.55);
    host.removesAtOnce = false;
    await market.sync();
    host.change(id, { reason: 'ImageNotFound', message: 'no such image' });
    const failed = await pod(id);
    expect(failed).toMatchObject({ status: 'CREATION_FAILED', ssh_connect_cmd: null });
    expect(await freeGpus()).toBe(2);
    expect(await held()).toBe(0);

    await market.sync();
    expect(host.calls).toEqual([`put ${id}`, `delete ${id}`]);
    host.pods.clear();
    await later(179_000);
    await market.sync();
    expect((await market.call('GET', '/pods', { headers: account.key })).body).toHaveLength(1);
    await later(1_001);
    expect((await market.call('GET', '/pods', { headers: account.key })).body).toEqual([]);
    expect((await pod(id)).error.code).toBe('pod_not_found');
    expect((await remove(id)).body.error.code).toBe('pod_not_found');
    const events = (await market.call('GET', `/pods/${id}/events`, { headers: account.key })).body;
    expect(events.at(-1)).toMatchObject({ sub_event_type: 'pod-create.failed' });
  });

  it('that the agent refuses is failed with its words, and not sent again', async () => {
    host.refusal = new ApiError('spec_refused', 'privileged is not allowed');
    const id = await rentOne();
    await market.sync();
    await market.sync();
    expect(await pod(id)).toMatchObject({
      status: 'CREATION_FAILED',
      reason_code: 'start_failed',
      message: 'privileged is not allowed',
    });
    expect(host.calls.filter((call) => call.startsWith('put'))).toHaveLength(1);
  });

  it('is tried again while the GPU is still in use, and given up after ten minutes', async () => {
    host.refusal = new ApiError('gpu_unavailable', 'still draining');
    const id = await rentOne();
    await market.sync();
    expect(await pod(id)).toMatchObject({ status: 'PENDING' });
    const puts = () => host.calls.filter((call) => call.startsWith('put')).length;
    await later(300);
    expect(puts()).toBe(1);
    await later(1_700);
    expect(puts()).toBe(2);
    await later(600_000);
    expect(await pod(id)).toMatchObject({ status: 'CREATION_FAILED' });
    await later(2_000);
    expect(await freeGpus()).toBe(2);
  });

  it('keeps its GPU while a silent agent may have it', async () => {
    host.up = false;
    const id = await rentOne();
    await later(600_000);
    await later(31_000);
    expect(await pod(id)).toMatchObject({ status: 'CREATION_FAILED' });
    expect(await freeGpus()).toBe(1);
    expect(await held()).toBe(0);
    host.up = true;
    await later(31_000);
    expect(await freeGpus()).toBe(2);
  });
});

describe('a deletion', () => {
  it('during the launch reaches the agent after it', async () => {
    host.arrives = 'pulling';
    const id = await rentOne();
    await market.sync();
    await remove(id);
    host.change(id, { phase: 'running' });
    await market.sync();
    expect(host.calls).toEqual([`put ${id}`, `delete ${id}`]);
    expect(await freeGpus()).toBe(2);
    expect((await pod(id)).details).toMatchObject({ reason_code: 'user_initiated' });
  });

  it('before the launch was sent never sends it', async () => {
    const id = await rentOne();
    await remove(id);
    await market.sync();
    expect(host.calls).toEqual([`delete ${id}`]);
    expect(await freeGpus()).toBe(2);
  });

  it('keeps the GPU until the agent has removed the pod', async () => {
    const id = await rentOne();
    await market.sync();
    host.removesAtOnce = false;
    expect((await remove(id)).body).toMatchObject({ status: 'DELETING', success: true });
    expect(await held()).toBe(0);
    await market.sync();
    await market.sync();
    expect(await freeGpus()).toBe(1);
    expect(await pod(id)).toMatchObject({ status: 'DELETING' });
    expect((await remove(id)).body.error.code).toBe('pod_state_conflict');
    host.change(id, { phase: 'removed' });
    await market.sync();
    expect(await freeGpus()).toBe(2);
    expect(host.calls.filter((call) => call.startsWith('delete'))).toHaveLength(1);
  });

  it('leaves a tombstone on request', async () => {
    const id = await rentOne();
    await remove(id);
    await market.sync();
    const path = `/pods/${id}?include_deleted=true`;
    const { body } = await market.call('GET', path, { headers: account.key });
    expect(body).toMatchObject({
      status: 'DELETED',
      deleted_at: expect.any(String),
      reason_code: 'user_initiated',
      last_event: { sub_event_type: 'pod-delete.success' },
    });
  });

  it('stops a pod that arrives on its node afterwards', async () => {
    const id = await rentOne();
    await market.sync();
    const view = host.pods.get(id);
    await remove(id);
    await market.sync();
    if (view !== undefined) host.pods.set(id, view);
    await later(10_000);
    expect(host.pods.has(id)).toBe(false);
  });
});

describe('what the agent has', () => {
  it('is put back when the agent lost it', async () => {
    const id = await rentOne();
    await market.sync();
    host.pods.clear();
    await later(10_000);
    expect(host.pods.get(id)).toMatchObject({ phase: 'running' });
    expect(await pod(id)).toMatchObject({ status: 'RUNNING' });
  });

  it('is left alone when nobody here knows it', async () => {
    const stranger = '22222222-2222-4222-8222-222222222222';
    const id = await rentOne();
    await market.sync();
    const view = host.pods.get(id);
    if (view !== undefined) host.pods.set(stranger, { ...view, id: stranger });
    await later(10_000);
    expect(host.pods.has(stranger)).toBe(true);
    expect(host.calls).not.toContain(`delete ${stranger}`);
  });

  it('is failed when its id was removed on the node behind our back', async () => {
    const id = await rentOne();
    await market.sync();
    host.pods.clear();
    host.refusal = new ApiError('conflict', 'its id cannot be used again');
    await later(10_000);
    expect(await pod(id)).toMatchObject({
      status: 'FAILED',
      message: 'its id cannot be used again',
    });
    await remove(id);
    await market.sync();
    expect(await freeGpus()).toBe(2);
  });

  it('counts as unknown after 60 s of silence, and as running again after', async () => {
    const id = await rentOne();
    await market.sync();
    host.up = false;
    await later(59_000);
    expect(await pod(id)).toMatchObject({ status: 'RUNNING', phase: 'ready' });
    await later(2_000);
    expect(await pod(id)).toMatchObject({ status: 'RUNNING', phase: 'unreachable' });
    host.up = true;
    await later(31_000);
    expect(await pod(id)).toMatchObject({ status: 'RUNNING', phase: 'ready' });
    expect(host.calls).toEqual([`put ${id}`]);
  });

  it('stays a reboot while nobody can follow it', async () => {
    const id = await rentOne();
    await market.sync();
    await market.call('POST', `/pods/${id}/reboot`, { headers: account.key, body: {} });
    host.up = false;
    await later(61_000);
    expect(await pod(id)).toMatchObject({ status: 'REBOOT_PENDING', phase: 'unreachable' });
    host.up = true;
    await later(31_000);
    host.change(id, { phase: 'running', reboots_done: 1 });
    await later(1_000);
    expect(await pod(id)).toMatchObject({ status: 'RUNNING', phase: 'ready' });
  });

  it('fails for good where the agent says so', async () => {
    const id = await rentOne();
    await market.sync();
    host.change(id, { phase: 'failed', reason: 'OOMKilled', message: 'out of memory' });
    await later(10_000);
    expect(await pod(id)).toMatchObject({ status: 'FAILED', ssh_connect_cmd: null });
    expect(await freeGpus()).toBe(1);
    await remove(id);
    await market.sync();
    expect(await freeGpus()).toBe(2);
  });
});

describe('a reboot', () => {
  it('happens once for a request whose answer was lost', async () => {
    const id = await rentOne();
    await market.sync();
    host.losesAnswers = true;
    expect((await post(id, 'reboot', {})).body).toMatchObject({ status: 'REBOOT_PENDING' });
    expect((await post(id, 'reboot')).body.error.code).toBe('pod_state_conflict');
    await market.sync();
    host.losesAnswers = false;
    await later(1_000);
    expect(await pod(id)).toMatchObject({ status: 'REBOOT_PENDING', ssh_connect_cmd: null });
    host.change(id, { phase: 'running', reboots_done: 1 });
    await market.sync();
    expect(await pod(id)).toMatchObject({ status: 'RUNNING' });
    expect(host.calls).toEqual([`put ${id}`, `reboot ${id} 1`]);
  });

  it('is done when the agent lost the pod and started it anew', async () => {
    const id = await rentOne();
    await market.sync();
    await post(id, 'reboot', {});
    host.pods.clear();
    await market.sync();
    await market.sync();
    expect(await pod(id)).toMatchObject({ status: 'RUNNING' });
    await post(id, 'reboot', {});
    await market.sync();
    expect(host.calls.at(-1)).toBe(`reboot ${id} 1`);
  });

  it('is refused before the first start', async () => {
    const id = await rentOne();
    expect((await post(id, 'reboot', {})).body.error.code).toBe('pod_state_conflict');
  });
});

describe('a scheduled removal', () => {
  it('comes when it is due, with its reason', async () => {
    const id = await rentOne({ termination_hours: 1 });
    await later(3_599_000);
    expect(await pod(id)).toMatchObject({ status: 'RUNNING' });
    await later(1_000);
    await market.sync();
    expect((await pod(id)).details).toMatchObject({ reason_code: 'scheduled_termination' });
    expect(host.pods.size).toBe(0);
  });

  it('comes after a restart of the central API that slept through it', async () => {
    const id = await rentOne({ termination_hours: 1 });
    await later(0);
    expect(await pod(id)).toMatchObject({ status: 'RUNNING' });
    await market.clock.advance(2 * 3_600_000);
    const restarted = await createCentral(market.ports, {
      validators: [],
      signupCreditUusd: 0,
      verifyEmailAtSignup: true,
      trustedProxies: [],
    });
    await restarted.syncPods();
    await restarted.syncPods();
    expect((await pod(id)).details).toMatchObject({ reason_code: 'scheduled_termination' });
    expect(host.pods.size).toBe(0);
    await restarted.close();
  });

  it('can be set within 1-720 hours, replaced and cancelled', async () => {
    const id = await rentOne();
    const at = (hours: number) => {
      const time = naiveUtc(market.clock.now() + hours * 3_600_000);
      return post(id, 'schedule-removal', { removal_scheduled_at: time });
    };
    expect((await at(0.99)).body.error.code).toBe('ttl_invalid');
    expect((await at(720.01)).body.error.code).toBe('ttl_invalid');
    expect((await at(1)).body.removal_scheduled_at).toMatch(/^\d{4}-.*\.\d{6}$/);
    expect((await at(720)).status).toBe(200);
    const soon = await post(id, 'schedule-removal', { removal_scheduled_at: 'soon' });
    expect(soon.status).toBe(422);
    const cancel = () =>
      market.call('DELETE', `/pods/${id}/schedule-removal`, { headers: account.key });
    expect((await cancel()).body.removal_scheduled_at).toBeNull();
    expect((await cancel()).body.error.code).toBe('pod_state_conflict');
    await remove(id);
    expect((await at(2)).body.error.code).toBe('pod_state_conflict');
  });
});

it('does not let a silent executor hold up another', async () => {
  const other = await market.verifiedNode();
  host.up = false;
  await rentOne();
  const id = (await market.rent(account, other.id)).body.id;
  await market.sync();
  expect(await pod(id)).toMatchObject({ status: 'RUNNING' });
});
