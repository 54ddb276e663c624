import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NotebookView } from '#shared/api/agent/notebook.ts';
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

function install(id: string, jupyter_internal_port: number, headers = account.key) {
  const body = { jupyter_internal_port };
  return market.call('POST', `/pods/${id}/install-jupyter`, { headers, body });
}

/** Makes the node report a change of the pod's notebook server. */
async function report(id: string, change: Partial<NotebookView>): Promise<void> {
  const notebook = host.pods.get(id)?.notebook;
  if (notebook === null || notebook === undefined) throw new Error('the node received no request');
  host.change(id, { notebook: { ...notebook, ...change } });
  await scene.later();
}

const notebookCalls = () => host.calls.filter((call) => call.startsWith('notebook'));

describe('install-jupyter', () => {
  it("returns the notebook server's URL with its token", async () => {
    const id = await scene.running();
    const { status, body } = await install(id, 8000);
    expect(status).toBe(200);
    expect(body).toMatchObject({ jupyter_installation_status: null, jupyter_url: null });
    await scene.later();
    expect(notebookCalls()).toEqual([`notebook ${id} 8000 1`]);
    expect(await scene.pod(id)).toMatchObject({
      jupyter_installation_status: null,
      jupyter_url: null,
    });
    await report(id, { status: 'running', path: '/lab' });
    const done = await scene.pod(id);
    expect(done).toMatchObject({ jupyter_installation_status: 'SUCCESS', jupyter_error: null });
    const external = done.ports_mapping['8000'];
    expect(done.jupyter_url).toMatch(
      new RegExp(`^http://127\\.0\\.0\\.1:${external}/lab\\?token=[0-9a-f]{32}$`),
    );
    expect(done.jupyter_url).toContain(host.notebookTokens.get(id));
    await report(id, { status: 'restarting' });
    expect((await scene.pod(id)).jupyter_url).toBe(done.jupyter_url);
  });

  it('calls the node once for repeated requests, and again with another token after a failure', async () => {
    const id = await scene.running();
    await install(id, 8000);
    await install(id, 8000);
    await scene.later();
    expect(notebookCalls()).toHaveLength(1);
    const first = host.notebookTokens.get(id);
    await report(id, { status: 'failed', reason: 'NotebookNoPython', message: 'no Python' });
    expect(await scene.pod(id)).toMatchObject({
      jupyter_installation_status: 'FAILED',
      jupyter_error: 'NotebookNoPython: no Python',
      jupyter_url: null,
      status: 'RUNNING',
    });
    expect((await install(id, 8000)).body.jupyter_installation_status).toBeNull();
    await scene.later();
    expect(notebookCalls()).toEqual([`notebook ${id} 8000 1`, `notebook ${id} 8000 2`]);
    expect(host.notebookTokens.get(id)).not.toBe(first);
  });

  it('repeats the call if the answer was lost or the node lost the pod', async () => {
    const id = await scene.running();
    host.up = false;
    await install(id, 8000);
    await scene.later();
    host.up = true;
    await scene.later(60_000);
    expect(notebookCalls()).toEqual([`notebook ${id} 8000 1`]);
    await report(id, { status: 'running', path: '/lab' });
    host.pods.delete(id);
    await scene.later(60_000);
    await scene.later(60_000);
    expect(notebookCalls()).toHaveLength(2);
    expect((await scene.pod(id)).jupyter_installation_status).toBeNull();
  });

  it('shows the reason of a refusal by the node', async () => {
    const id = await scene.running();
    host.notebookRefusal = new ApiError('bad_request', 'that port is not open');
    await install(id, 8000);
    await scene.later();
    expect(await scene.pod(id)).toMatchObject({
      jupyter_installation_status: 'FAILED',
      jupyter_error: 'that port is not open',
      status: 'RUNNING',
    });
  });

  it.each([
    [22, 400],
    [8888, 400],
    [0, 422],
    [70_000, 422],
  ])('rejects port %i with %i', async (port, status) => {
    const id = await scene.running();
    const { body, ...answer } = await install(id, port);
    expect(answer.status).toBe(status);
    expect(body.error.code).toBe(status === 400 ? 'bad_request' : 'validation_error');
    await scene.later();
    expect(notebookCalls()).toEqual([]);
  });

  it('requires a running pod of the caller', async () => {
    host.arrives = 'pulling';
    const id = await scene.running();
    const early = await install(id, 8000);
    expect(early.status).toBe(400);
    expect(early.body.error.code).toBe('pod_state_conflict');
    const stranger = await market.renter();
    const foreign = await install(id, 8000, stranger.key);
    expect(foreign.body.error.code).toBe('pod_not_found');
  });
});

describe('enable_jupyter', () => {
  it('maps a port, and requests the notebook server once the pod runs', async () => {
    host.arrives = 'pulling';
    const id = await scene.running({ enable_jupyter: true });
    expect(await scene.pod(id)).toMatchObject({ enable_jupyter: true, jupyter_url: null });
    expect(host.specs.get(id)?.internal_ports).toContain(8888);
    await scene.later();
    expect(notebookCalls()).toEqual([]);
    host.change(id, { phase: 'running' });
    await scene.later();
    await scene.later();
    expect(notebookCalls()).toEqual([`notebook ${id} 8888 1`]);
    await report(id, { status: 'running', path: '/tree' });
    expect((await scene.pod(id)).jupyter_url).toContain('/tree?token=');
  });
});
