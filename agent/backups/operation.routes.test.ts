/** Restores through the HTTP routes of a whole agent, which stops the pod's container and starts it again. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { OperationList, OperationView } from '#shared/api/agent/operations.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { writeQuickRepository } from '../../test/fakes/external/quick-repository.ts';
import { PASSWORD } from '../../test/fakes/scenes/backup-scene.ts';

const IMAGE = 'registry.example/one:1';
const DIGEST = `sha256:${'a1'.repeat(32)}`;
const folder = mkdtempSync(join(tmpdir(), 'podwright-operations-'));
const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  rmSync(folder, { recursive: true });
});

it('backs up and restores a running pod and refuses invalid requests', async () => {
  const engine = createFakeEngine(systemClock);
  engine.addImage(IMAGE, DIGEST);
  engine.keepVolumesIn(folder);
  const agent = createTestAgent({ engine, clock: systemClock });
  ends.push(() => agent.stop());
  agent.start();
  const podId = systemRandom.uuid();
  const call = async (method: 'GET' | 'POST' | 'PUT', url: string, payload?: object) => {
    const sent = payload === undefined ? {} : { payload };
    const response = await agent.server.inject({ method, url, ...sent });
    return { status: response.statusCode, body: response.json() };
  };
  await call(
    'PUT',
    `/v1/pods/${podId}`,
    podSpec({ image: { reference: IMAGE }, volumes: ['/data'] }),
  );
  const phase = async () => (await call('GET', `/v1/pods/${podId}`)).body.phase;
  await eventually('the pod runs', async () => (await phase()) === 'running');
  const [{ hostPath: volume } = { hostPath: '' }] = await engine.listVolumes({});
  mkdirSync(volume, { recursive: true });
  writeFileSync(join(volume, 'file'), 'first');

  const repository = { location: join(folder, 'repository'), password: PASSWORD };
  writeQuickRepository(repository.location, PASSWORD);
  const id = systemRandom.uuid();
  const backup = { operation_id: id, path: '/data', repository, create_repository: true };
  const ended = (operation: string) =>
    eventually(
      'the end',
      async () => {
        const view = OperationView.parse((await call('GET', `/v1/operations/${operation}`)).body);
        return view.finished_ms === null ? null : view;
      },
      60_000,
    );
  expect((await call('POST', `/v1/pods/${podId}/backups`, backup)).status).toBe(200);
  const busy = await call('POST', `/v1/pods/${podId}/backups`, {
    ...backup,
    operation_id: systemRandom.uuid(),
  });
  expect(busy).toMatchObject({ status: 409 });
  expect(JSON.stringify(busy.body)).toContain(`"active_operation_id":"${id}"`);
  const done = await ended(id);
  expect(done).toMatchObject({ stage: 'done', pod_id: podId, kind: 'backup' });
  expect(await phase()).toBe('running');

  writeFileSync(join(volume, 'file'), 'second');
  const restore = systemRandom.uuid();
  const wanted = {
    operation_id: restore,
    snapshot_id: done.snapshot_id,
    source_path: '/data',
    target_path: '/data',
    repository,
  };
  await call('POST', `/v1/pods/${podId}/restores`, wanted);
  await eventually('the pod to stop', async () => (await phase()) !== 'running', 60_000);
  expect(await ended(restore)).toMatchObject({ stage: 'done', kind: 'restore' });
  expect(readFileSync(join(volume, 'file'), 'utf8')).toBe('first');
  const view = (await call('GET', `/v1/pods/${podId}`)).body;
  expect(view).toMatchObject({ phase: 'running', reason: null, restart_count: 0 });
  const listed = OperationList.parse((await call('GET', `/v1/operations?pod_id=${podId}`)).body);
  expect(listed.operations.map((operation) => operation.id)).toEqual([restore, id]);

  const target = (path: string) => call('GET', `/v1/pods/${podId}/restore-target?path=${path}`);
  expect((await target('/data')).body).toEqual({ state: 'occupied' });
  expect((await target('/data/file')).body).toEqual({ state: 'occupied' });
  const below = await target('/data/file/below');
  expect(below.body).toMatchObject({ error: { code: 'bad_request' } });
  expect((await target('/data/new')).body).toEqual({ state: 'absent' });
  mkdirSync(join(volume, 'empty'));
  expect((await target('/data/empty')).body).toEqual({ state: 'empty' });
  expect((await target('/etc')).body).toMatchObject({ error: { code: 'bad_request' } });
  expect((await target('/data/../etc')).status).toBe(422);
  const drill = { operation_id: systemRandom.uuid(), snapshot_id: done.snapshot_id, repository };
  for (const sample of [undefined, { seed: 'x', max_files: 0, max_bytes: 1 }]) {
    const answer = await call('POST', `/v1/pods/${podId}/verifications`, { ...drill, sample });
    expect(answer.status).toBe(422);
  }

  const bad = (change: object) =>
    call('POST', `/v1/pods/${podId}/backups`, {
      ...backup,
      operation_id: systemRandom.uuid(),
      ...change,
    });
  expect((await bad({ path: '/data/../etc' })).status).toBe(422);
  expect((await bad({ path: 'data' })).status).toBe(422);
  expect(
    (await bad({ repository: { ...repository, environment: { LD_PRELOAD: '/x' } } })).status,
  ).toBe(422);
  expect(
    (
      await call('POST', `/v1/pods/${systemRandom.uuid()}/backups`, {
        ...backup,
        operation_id: systemRandom.uuid(),
      })
    ).status,
  ).toBe(404);
  expect((await call('GET', `/v1/operations/${systemRandom.uuid()}`)).status).toBe(404);
  expect((await call('POST', `/v1/operations/${restore}/cancel`)).body.stage).toBe('done');
}, 120_000);
