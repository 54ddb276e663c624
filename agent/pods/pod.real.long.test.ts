/** Pods on the real engine: ends while the agent is stopped, volumes across a change, taken ports, failing programs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { podSpec } from '../../test/fakes/agents/test-agent.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createRealPods } from '../../test/fakes/scenes/real-pods.ts';
import { openDatabase } from '../database/database.ts';
import { LAUNCH_LIMIT_MS } from './launch-limit.ts';

let scene: ReturnType<typeof createRealPods>;
beforeEach(() => {
  scene = createRealPods();
});
afterEach(() => scene.close());

it('restarts a pod that ended while the agent was not running', async () => {
  const host = await scene.newHost();
  const first = scene.startAgent(host);
  const pod = await scene.launch(first);
  await scene.stopAgent(first);
  await scene.engine.stopContainer(pod.container_id ?? '', 5);

  const second = scene.startAgent(host);
  const back = await eventually('the restart', async () => {
    const view = await scene.podIn(second, pod.id, 'running');
    return view.restart_count === 1 && view;
  });
  expect(back).toMatchObject({ container_id: pod.container_id, last_exit: { exit_code: 0 } });
  expect(await scene.pageOf(back)).toContain('running');
});

it('keeps the data of volumes across a change, copies the image’s files into new volumes, and reports their folders', async () => {
  const host = await scene.newHost();
  const agent = scene.startAgent(host);
  const pod = await scene.launch(agent, { volumes: ['/www', '/data'] });
  expect(await scene.pageOf(pod)).toContain('This pod is running.');
  const roots = await agent.core.dataRootsOf(pod.id);
  expect(roots.map(({ mountPath }) => mountPath)).toEqual(['/www', '/data']);
  const www = roots[0]?.hostPath ?? '';
  writeFileSync(join(www, 'index.html'), 'changed\n');

  const next = podSpec({ generation: 2, volumes: ['/www'], environment: { COLOUR: 'green' } });
  await scene.send(agent, 'PUT', `/v1/pods/${pod.id}`, next);
  const edited = await eventually('the change', async () => {
    const view = await scene.podIn(agent, pod.id, 'running');
    return view.observed_generation === 2 && view.change === null && view;
  });
  expect(edited.container_id).not.toBe(pod.container_id);
  expect(await scene.pageOf(edited)).toBe('changed\n');
  expect(await agent.core.dataRootsOf(pod.id)).toEqual([{ mountPath: '/www', hostPath: www }]);
  expect(await scene.engine.listVolumes(scene.ownerOf(host.executorId))).toHaveLength(2);

  await scene.send(agent, 'DELETE', `/v1/pods/${pod.id}`);
  await scene.podIn(agent, pod.id, 'removed');
  expect(await scene.engine.listVolumes(scene.ownerOf(host.executorId))).toEqual([]);
  expect(await agent.core.dataRootsOf(pod.id)).toEqual([]);
});

it('leases another port if its own is in use at the start', async () => {
  const host = await scene.newHost();
  const squatter = scene.startAgent({ ...(await scene.newHost()), portRange: host.portRange });
  const taken = await scene.launch(squatter);
  // The probe reports the port as free, so the engine detects the conflict.
  const agent = scene.startAgent(host, async () => true);
  const pod = await scene.launch(agent);
  expect(pod.ports['8000']).not.toBe(taken.ports['8000']);
  expect(pod).toMatchObject({ restart_count: 0, last_exit: null, reason: null });
  expect(await scene.pageOf(pod)).toContain('running');
});

it('stops retrying a pod that has never worked within the limit, also after a restart of the agent', async () => {
  const host = await scene.newHost();
  const first = scene.startAgent(host);
  const { id } = await scene.launch(first, { command: ['sh', '-c', 'sleep 0.2; exit 3'] });
  await scene.stopAgent(first);
  const store = openDatabase(host.database);
  store.prepare('UPDATE pods SET created_ms = created_ms - :ms').run({ ms: LAUNCH_LIMIT_MS });
  store.close();
  const failed = await scene.podIn(scene.startAgent(host), id, 'failed');
  expect(failed).toMatchObject({ next_retry_ms: null, last_exit: { exit_code: 3 } });
});
