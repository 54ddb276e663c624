/** Persistent volumes over HTTP, with a complete agent and an in-memory engine. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, orphansOf, podSpec } from '../../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../../test/fakes/engine/fake-engine.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import type { Agent } from '../../app.ts';
import { openDatabase } from '../../database/database.ts';
import { LABELS } from '../engine/engine.ts';
import { volumeCopyName } from './volume.service.ts';

const IMAGE = 'registry.example/one:1';
const MIB = 2 ** 20;
const LIMIT = 100 * MIB;
const MINUTE_MS = 60_000;
const EXECUTOR = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff';
const VOLUME = systemRandom.uuid();

const clock = createManualClock();
let folder: string;
let engine: ReturnType<typeof createFakeEngine>;
let agent: Agent;
let inVolumes: number | null;

function openAgent(database = openDatabase(':memory:')): Agent {
  return createTestAgent({
    engine,
    clock,
    database,
    executorId: EXECUTOR,
    folderBytes: async () => inVolumes,
    folderEntries: async () => (inVolumes === null ? null : 4),
  });
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-volumes-'));
  engine = createFakeEngine(clock);
  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
  engine.keepVolumesIn(folder);
  inVolumes = 0;
  agent = openAgent();
});
afterEach(async () => {
  await agent.stop();
  rmSync(folder, { recursive: true });
});

async function call(method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, payload?: object) {
  const sent = payload === undefined ? {} : { payload };
  const response = await agent.server.inject({ method, url, ...sent });
  return { status: response.statusCode, body: response.json() };
}

const put = (id: string, volume_id = VOLUME) =>
  call('PUT', `/v1/volumes/${id}`, { volume_id, size_bytes: LIMIT });
const listed = async () => (await call('GET', '/v1/volumes')).body.volumes;

/** Creates a volume with its folder, as an engine on this host would. */
async function made(id = systemRandom.uuid()): Promise<string> {
  mkdirSync(join(folder, volumeCopyName(id), '_data'), { recursive: true });
  expect((await put(id)).status).toBe(200);
  return id;
}

async function launch(change: Partial<PodSpecInput>): Promise<string> {
  const id = systemRandom.uuid();
  const spec = podSpec({ image: { reference: IMAGE }, ...change });
  expect((await call('PUT', `/v1/pods/${id}`, spec)).status).toBe(200);
  await eventually('the pod', () => ['running', 'failed'].includes(agent.pods.get(id).phase));
  return id;
}

const mountsOf = (podId: string) =>
  engine.containers.get(agent.pods.get(podId).container_id ?? '')?.spec.volumes;

it('creates a volume once, mounts it beside the pod’s data volumes, and keeps it after the pod’s removal', async () => {
  const id = await made();
  await put(id);
  const view = { id, volume_id: VOLUME, size_bytes: LIMIT, state: 'present' };
  expect(await listed()).toEqual([{ ...view, bytes: 0, files: 0, measured_age_ms: 0 }]);
  expect(engine.volumes.get(volumeCopyName(id))?.labels).toMatchObject({
    [LABELS.managed]: '1',
    [LABELS.executor]: EXECUTOR,
    [LABELS.kind]: 'volume',
    [LABELS.volume]: VOLUME,
  });
  const podId = await launch({ volumes: ['/data'], volume: { id } });
  expect(mountsOf(podId)?.map(({ target }) => target)).toEqual(['/data', '/mnt']);
  expect(mountsOf(podId)?.[1]).toMatchObject({ name: volumeCopyName(id), noCopy: true });

  expect((await call('DELETE', `/v1/volumes/${id}`)).status).toBe(409);
  await call('DELETE', `/v1/pods/${podId}`);
  await eventually('the pod is gone', () => agent.pods.get(podId).phase === 'removed');
  expect([...engine.volumes.keys()]).toEqual([volumeCopyName(id)]);
  await clock.advance(10 * MINUTE_MS);
  expect(await orphansOf(agent)).toBe(0);
  expect((await call('DELETE', `/v1/volumes/${id}`)).body).toMatchObject({ state: 'removed' });
  expect([engine.volumes.size, await listed()]).toEqual([0, []]);
  expect((await call('DELETE', `/v1/volumes/${id}`)).status).toBe(404);
});

it('rejects a volume that could not be backed up, and creates nothing', async () => {
  const id = systemRandom.uuid();
  const refused = await put(id);
  expect([refused.status, refused.body.error.code]).toEqual([400, 'spec_refused']);
  expect([engine.volumes.size, await listed()]).toEqual([0, []]);
});

it('rejects another volume with the same id, invalid requests, and a pod that uses /mnt', async () => {
  const id = await made();
  expect((await put(id, systemRandom.uuid())).status).toBe(409);
  expect((await call('PUT', '/v1/volumes/x', { volume_id: VOLUME, size_bytes: 1 })).status).toBe(
    422,
  );
  const unlimited = { volume_id: VOLUME, size_bytes: 0 };
  expect((await call('PUT', `/v1/volumes/${id}`, unlimited)).status).toBe(422);
  const spec = podSpec({ image: { reference: IMAGE }, volumes: ['/mnt/x'], volume: { id } });
  const pod = await call('PUT', `/v1/pods/${systemRandom.uuid()}`, spec);
  expect([pod.status, pod.body.error.code]).toEqual([400, 'spec_refused']);
});

it('does not start a pod whose volume is missing, and does not create the volume', async () => {
  const podId = await launch({ volume: { id: systemRandom.uuid() } });
  expect(agent.pods.get(podId)).toMatchObject({ phase: 'failed', reason: 'StartFailed' });
  expect(agent.pods.get(podId).message).toContain('not on this host');
  expect(engine.volumes.size).toBe(0);
});

it('does not mount a volume in a second pod', async () => {
  const id = await made();
  const first = await launch({ volume: { id } });
  await clock.advance(1);
  const second = await launch({ volume: { id } });
  expect(agent.pods.get(second)).toMatchObject({ phase: 'failed', reason: 'StartFailed' });
  expect(agent.pods.get(second).message).toContain('Another pod has the volume');
  expect(agent.pods.get(first).phase).toBe('running');
});

it('lists its volumes after the store was lost, and drops a volume that was removed from the engine', async () => {
  const [kept, taken] = [await made(), await made()];
  await agent.stop();
  agent = openAgent();
  expect((await listed()).map(({ id }: { id: string }) => id)).toEqual([kept, taken].toSorted());
  await engine.removeVolume(volumeCopyName(taken));
  expect(await listed()).toMatchObject([{ id: kept, volume_id: VOLUME, size_bytes: LIMIT }]);
});

it('does not use another owner’s volume that has the same name', async () => {
  const id = systemRandom.uuid();
  await engine.createVolume(volumeCopyName(id), { somebody: 'else' });
  expect((await put(id)).status).toBe(409);
  expect(await listed()).toEqual([]);
});

it('reports a volume’s size and when it was measured, mounted or not', async () => {
  const id = await made();
  inVolumes = 5 * MIB;
  await agent.core.volumeWatch.runOnce();
  await clock.advance(1_500);
  expect(await listed()).toMatchObject([{ id, bytes: 5 * MIB, files: 3, measured_age_ms: 1_500 }]);
  inVolumes = null;
  await agent.core.volumeWatch.runOnce();
  expect(await listed()).toMatchObject([{ bytes: 5 * MIB, measured_age_ms: 1_500 }]);
});

it('stops a pod ten minutes after its volume exceeds the limit, or at once if it is far above', async () => {
  const id = await made();
  inVolumes = 3 * LIMIT;
  await agent.core.volumeWatch.runOnce();
  const podId = await launch({ volume: { id } });
  const look = async (bytes: number) => {
    inVolumes = bytes;
    await clock.advance(MINUTE_MS);
    await agent.core.volumeWatch.runOnce();
    return agent.pods.get(podId).phase;
  };
  // The volume exceeded its limit before the pod got it, so the pod gets the grace period.
  expect(await look(3 * LIMIT)).toBe('running');
  for (let minutes = 0; minutes < 8; minutes += 1) expect(await look(3 * LIMIT)).toBe('running');
  expect(await look(LIMIT - 1)).toBe('running');
  for (let minutes = 0; minutes < 9; minutes += 1) expect(await look(2 * LIMIT)).toBe('running');
  expect(await look(2 * LIMIT)).toBe('running');
  expect(await look(2 * LIMIT)).toBe('failed');
  expect(agent.pods.get(podId)).toMatchObject({ reason: 'DiskQuotaExceeded' });
  expect(agent.pods.get(podId).message).toContain('/mnt');

  const other = await made();
  const second = await launch({ volume: { id: other } });
  // The volume was empty at first, so the pod wrote all of its content.
  await look(2 * LIMIT);
  expect(agent.pods.get(second)).toMatchObject({ phase: 'failed', reason: 'DiskQuotaExceeded' });
});
