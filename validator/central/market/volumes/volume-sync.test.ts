import { afterEach, beforeEach, expect, it } from 'vitest';
import { ApiError } from '#shared/runtime/errors.ts';
import { createVolumeScene, type VolumeScene } from '../../../../test/fakes/scenes/volume-scene.ts';

const DAY_MS = 24 * 3_600_000;

let scene: VolumeScene;
beforeEach(async () => {
  scene = await createVolumeScene({ signupCreditUusd: 1_000_000_000 });
});
afterEach(() => scene.close());

const copies = () => scene.market.ports.db.selectFrom('volume_copies').selectAll().execute();
const otherHost = () => scene.market.agents.host(scene.other.id);

/** Ends the pod and advances the clock until its node has begun to save the volume. */
async function left(podId: string): Promise<void> {
  await scene.remove(podId);
  await scene.later();
  await scene.later(2_000);
}

it("creates the copy before the pod starts, with the volume's size limit", async () => {
  const id = await scene.make();
  const podId = await scene.runOn(scene.node.id, id);
  const copy = scene.copyOn(scene.node.id);
  expect(scene.host.volumes.get(copy)).toMatchObject({ volume_id: id, size_bytes: 20 * 2 ** 30 });
  expect((await scene.pod(podId)).status).toBe('RUNNING');
  expect(await scene.volumeEvents(podId)).toEqual(['pod-lifecycle.status volume_attached']);
});

it('saves the volume of an ended pod, then removes the copy', async () => {
  const id = await scene.make();
  const podId = await scene.runOn(scene.node.id, id);
  const copy = scene.copyOn(scene.node.id);
  await left(podId);
  const operation = scene.operationOn(scene.node.id)?.id ?? '';
  expect(scene.host.operations.requests.get(operation)).toMatchObject({
    path: '/mnt',
    create_repository: true,
    repository: { location: `rest:http://storage.test/${id}/` },
  });
  scene.host.operations.progress(operation, { stage: 'uploading', percent: 40 });
  await scene.later(2_000);
  expect(await scene.volume(id)).toMatchObject({
    status: 'saving',
    attached_pod_id: null,
    executor_id: scene.node.id,
    progress: 40,
    last_saved_at: null,
  });
  scene.host.operations.progress(operation, { total_bytes: 1_000, total_files: 3 });
  scene.host.operations.finish(operation);
  await scene.later(2_000);
  await scene.later(2_000);
  expect(await scene.volume(id)).toMatchObject({
    status: 'available',
    executor_id: null,
    last_saved_at: expect.any(String),
    current_size_bytes: 1_000,
    current_file_count: 3,
    progress: null,
  });
  expect([scene.host.volumes.views.has(copy), await copies()]).toEqual([false, []]);
  expect(await scene.volumeEvents(podId)).toContain('backup.success volume_saved');
});

it('restores the volume on another node before its pod is sent to this node', async () => {
  const id = await scene.saved();
  const rented = (await scene.rentOn(scene.other.id, id)).body;
  await scene.market.sync();
  const operation = scene.operationOn(scene.other.id)?.id ?? '';
  expect(otherHost().operations.requests.get(operation)).toMatchObject({
    snapshot_id: 'a'.repeat(64),
    source_path: '/mnt',
    target_path: '/mnt',
  });
  otherHost().operations.progress(operation, { stage: 'fetching', percent: 50 });
  // Longer than the limit of a launch, because waiting for a volume counts as contact.
  for (let minutes = 0; minutes < 12; minutes += 1) await scene.later(60_000);
  expect(otherHost().pods.size).toBe(0);
  const waiting = await scene.pod(rented.id);
  expect(waiting).toMatchObject({ status: 'PENDING', phase: 'restoring' });
  expect(waiting.message).toContain('50 %');
  expect(waiting.volume).toMatchObject({ status: 'restoring', progress: 50 });
  otherHost().operations.finish(operation);
  await scene.later();
  await scene.later();
  expect(await scene.pod(rented.id)).toMatchObject({
    status: 'RUNNING',
    volume: { id, status: 'attached' },
    message: null,
  });
  expect(await scene.volumeEvents(rented.id)).toEqual([
    'pod-lifecycle.status volume_attached',
    'restore.success volume_restored',
  ]);
});

it('rejects rentals on other nodes while a volume is saved, and attaches the volume at once on the same node', async () => {
  const id = await scene.make();
  const first = await scene.runOn(scene.node.id, id);
  const copy = scene.copyOn(scene.node.id);
  await left(first);
  const operation = scene.operationOn(scene.node.id)?.id ?? '';
  const elsewhere = await scene.rentOn(scene.other.id, id);
  expect([elsewhere.status, elsewhere.body.error.code]).toEqual([409, 'conflict']);
  expect(elsewhere.body.message).toContain(`being saved on node ${scene.node.id}`);
  expect(elsewhere.body.error.hint).toContain('available');

  const second = await scene.runOn(scene.node.id, id);
  expect(scene.host.specs.get(second)?.volume).toEqual({ id: copy });
  // The save of the first pod ends late, while the second pod uses the volume, so it does not count as saved.
  scene.host.operations.finish(operation, 'b');
  await scene.later(10_000);
  expect(await scene.volume(id)).toMatchObject({ status: 'attached', last_saved_at: null });
  await scene.savedFrom(scene.node.id, second, 'c');
  const row = await scene.market.ports.db.selectFrom('volumes').select('snapshot_id').execute();
  expect(row).toEqual([{ snapshot_id: 'c'.repeat(64) }]);
});

it('retries a save while the storage is full, records one event, and loses no data', async () => {
  const id = await scene.make();
  const podId = await scene.runOn(scene.node.id, id);
  scene.storage.isUp = false;
  await left(podId);
  expect((await scene.volume(id)).message).toBe('The storage of volumes does not answer');
  scene.storage.isUp = true;
  await scene.later(10_000);
  const full = { code: 'RepositoryNoSpace', message: 'The account’s space is used up' } as const;
  for (let attempt = 0; attempt < 4; attempt += 1) {
    scene.host.operations.fail(scene.operationOn(scene.node.id)?.id ?? '', full);
    await scene.later(2_000);
    expect(await scene.volume(id)).toMatchObject({ status: 'saving', message: full.message });
    await scene.later(600_000);
  }
  const begun = scene.host.operations.calls.filter((call) => call.startsWith('backup'));
  expect(new Set(begun).size).toBe(5);
  expect((await scene.volumeEvents(podId)).filter((told) => told.startsWith('backup'))).toEqual([
    'backup.failed volume',
    'backup.failed volume',
  ]);
  scene.host.operations.finish(scene.operationOn(scene.node.id)?.id ?? '');
  await scene.later(2_000);
  expect(await scene.volume(id)).toMatchObject({ status: 'available', message: null });
});

it('repeats an operation with the same id if the node did not answer or the answer was lost', async () => {
  const id = await scene.saved();
  otherHost().losesAnswers = true;
  await scene.rentOn(scene.other.id, id);
  await scene.later();
  otherHost().losesAnswers = false;
  await scene.later(2_000);
  await scene.later(2_000);
  const operation = scene.operationOn(scene.other.id)?.id ?? '';
  otherHost().operations.views.delete(operation);
  await scene.later(2_000);
  expect(new Set(otherHost().operations.calls)).toEqual(new Set([`restore ${operation}`]));
  expect(otherHost().operations.requests.size).toBe(1);
});

it('fails a pod whose volume cannot be restored, and keeps the volume', async () => {
  const id = await scene.saved();
  const rented = (await scene.rentOn(scene.other.id, id)).body;
  await scene.market.sync();
  const lack = { code: 'NoSpace', message: 'The restore needs more' } as const;
  otherHost().operations.fail(scene.operationOn(scene.other.id)?.id ?? '', lack);
  for (let pass = 0; pass < 3; pass += 1) await scene.later(2_000);
  const failed = await scene.pod(rented.id);
  expect(failed).toMatchObject({ status: 'CREATION_FAILED', reason_code: 'start_failed' });
  expect(failed.message).toContain('The restore needs more');
  expect(await scene.volume(id)).toMatchObject({ status: 'available', attached_pod_id: null });
  expect(otherHost().volumes.views.size).toBe(0);
  expect((await scene.rentOn(scene.node.id, id)).status).toBe(200);
});

it('does not count the restore of its volume against the time limit of a launch', async () => {
  const id = await scene.saved();
  const rented = (await scene.rentOn(scene.other.id, id)).body;
  await scene.market.sync();
  otherHost().arrives = 'pulling';
  for (let minute = 0; minute < 30; minute += 1) await scene.later(60_000);
  // During a restart of the central API neither a pass nor due work runs.
  await scene.market.clock.advance(20 * 60_000);
  for (let minute = 0; minute < 2; minute += 1) await scene.later(60_000);
  expect(await scene.pod(rented.id)).toMatchObject({ status: 'PENDING', phase: 'restoring' });
  otherHost().operations.finish(scene.operationOn(scene.other.id)?.id ?? '');
  await scene.later(2_000);
  await scene.later(2_000);
  expect((await scene.pod(rented.id)).phase).toBe('pulling');
  for (let minute = 0; minute < 9; minute += 1) await scene.later(60_000);
  expect((await scene.pod(rented.id)).status).toBe('PENDING');
  await scene.later(60_000);
  expect((await scene.pod(rented.id)).status).toBe('CREATION_FAILED');
});

it('fails a launch that waits for its volume on a node that has not answered for the limit', async () => {
  const id = await scene.saved();
  const rented = (await scene.rentOn(scene.other.id, id)).body;
  await scene.market.sync();
  expect((await scene.pod(rented.id)).phase).toBe('restoring');
  otherHost().up = false;
  for (let minute = 0; minute < 9; minute += 1) await scene.later(60_000);
  expect((await scene.pod(rented.id)).status).toBe('PENDING');
  for (let minute = 0; minute < 3; minute += 1) await scene.later(60_000);
  expect(await scene.pod(rented.id)).toMatchObject({
    status: 'CREATION_FAILED',
    reason_code: 'provider_fault',
  });
});

it('fails a pod on a node whose agent does not support volumes', async () => {
  const id = await scene.make();
  scene.host.volumes.refusal = new ApiError('spec_refused', 'not root');
  const podId = await scene.runOn(scene.node.id, id);
  await scene.later();
  expect(await scene.pod(podId)).toMatchObject({ status: 'CREATION_FAILED' });
  expect((await scene.pod(podId)).message).toContain('not root');
});

it('removes a copy whose pod is deleted before the restore ends', async () => {
  const id = await scene.saved();
  const rented = (await scene.rentOn(scene.other.id, id)).body;
  await scene.market.sync();
  await scene.remove(rented.id);
  for (let pass = 0; pass < 3; pass += 1) await scene.later(2_000);
  expect(await scene.volume(id)).toMatchObject({ status: 'available', attached_pod_id: null });
  expect([otherHost().volumes.views.size, await copies()]).toEqual([0, []]);
});

it('saves an attached volume every six hours without interrupting its pod', async () => {
  const id = await scene.make();
  const podId = await scene.runOn(scene.node.id, id);
  for (let hours = 0; hours < 6; hours += 1) {
    expect(scene.host.operations.calls).toEqual([]);
    await scene.later(3_600_000);
  }
  const { id: operation = '' } = scene.operationOn(scene.node.id) ?? {};
  scene.host.operations.progress(operation, {
    total_bytes: 10,
    total_files: 1,
    quality: 'partial',
  });
  scene.host.operations.finish(operation, 'd');
  await scene.later(2_000);
  const saved = { status: 'attached', attached_pod_id: podId, last_saved_at: expect.any(String) };
  expect(await scene.volume(id)).toMatchObject({ ...saved, progress: null });
  await scene.later(3_600_000);
  expect(scene.host.operations.calls).toHaveLength(1);
  scene.host.volumes.views.clear();
  await left(podId);
  await scene.later(600_000);
  const row = await scene.market.ports.db.selectFrom('volumes').select('snapshot_id').execute();
  expect(row).toEqual([{ snapshot_id: 'd'.repeat(64) }]);
  expect(await scene.volume(id)).toMatchObject({ status: 'available', attached_pod_id: null });
});

it('returns a volume to its last saved state if the node lost the copy, and records an event', async () => {
  const id = await scene.make();
  const podId = await scene.runOn(scene.node.id, id);
  const kept = new Map(scene.host.volumes.views);
  scene.host.volumes.views.clear();
  await scene.later(60_000);
  // A Docker engine may be unavailable for a short time.
  for (const [copy, view] of kept) scene.host.volumes.views.set(copy, view);
  await scene.later(60_000);
  expect(await scene.volume(id)).toMatchObject({ executor_id: scene.node.id });
  scene.host.volumes.views.clear();
  await scene.later(600_000);
  expect(await scene.volume(id)).toMatchObject({ status: 'attached', executor_id: null });
  expect(await scene.volumeEvents(podId)).toContain('pod-lifecycle.status volume_given_up');
  await left(podId);
  expect(await scene.volume(id)).toMatchObject({ status: 'available', last_saved_at: null });
});

it('abandons the copy on a silent node after a day, and ignores the copy if the node answers again', async () => {
  const id = await scene.saved('a');
  const podId = await scene.runOn(scene.node.id, id);
  scene.host.operations.finish(scene.operationOn(scene.node.id)?.id ?? '');
  await scene.later(2_000);
  const late = scene.copyOn(scene.node.id);
  scene.host.up = false;
  await scene.remove(podId);
  await scene.later(DAY_MS - 60_000);
  await scene.market.central.tendBackups();
  expect((await scene.rentOn(scene.other.id, id)).status).toBe(409);
  await scene.later(120_000);
  await scene.market.central.tendBackups();
  expect(await scene.volume(id)).toMatchObject({ status: 'available', attached_pod_id: null });
  const rented = (await scene.rentOn(scene.other.id, id)).body;
  scene.host.up = true;
  for (let pass = 0; pass < 3; pass += 1) await scene.later(30_000);
  expect(scene.host.volumes.calls.filter((call) => call === `delete ${late}`)).not.toEqual([]);
  const begun = scene.host.operations.calls.filter((call) => call.startsWith('backup'));
  expect(begun).toHaveLength(1);
  expect(await scene.volume(id)).toMatchObject({ attached_pod_id: rented.id });
});

it('abandons, on request, only the unsaved copy of a deleted pod', async () => {
  const id = await scene.saved('a');
  const release = () => scene.call('POST', `/volumes/${id}/release`);
  expect((await release()).body.error.code).toBe('bad_request');
  const podId = await scene.runOn(scene.node.id, id);
  expect((await release()).body.message).toContain(podId);
  scene.host.up = false;
  await scene.remove(podId);
  expect((await release()).body).toMatchObject({ status: 'available', attached_pod_id: null });
  expect((await scene.rentOn(scene.other.id, id)).body).toMatchObject({ volume: { id } });
});

it('keeps one snapshot of each volume, and removes the repository with the volume', async () => {
  const id = await scene.saved('a');
  await scene.market.central.tendBackups();
  expect(scene.storage.pruned).toEqual([]);
  const podId = await scene.runOn(scene.other.id, id);
  otherHost().operations.finish(scene.operationOn(scene.other.id)?.id ?? '');
  await scene.later(2_000);
  // The restore used the snapshot that the next save will replace.
  expect((await copies())[0]).toMatchObject({ state: 'attached' });
  await scene.savedFrom(scene.other.id, podId, 'b');
  await scene.market.central.tendBackups();
  await scene.market.central.tendBackups();
  expect(scene.storage.pruned).toEqual([['b'.repeat(64)]]);

  scene.storage.isUp = false;
  await scene.volumes('DELETE', `/${id}`);
  await scene.market.central.tendBackups();
  scene.storage.isUp = true;
  await scene.market.central.tendBackups();
  expect(scene.storage.removed).toEqual([id]);
});

it('does not clean a repository in use, and does not use a repository that is being cleaned', async () => {
  const id = await scene.saved('a');
  const { db } = scene.market.ports;
  await db.updateTable('volumes').set({ has_waste: 1 }).execute();
  let pruned = (_done: boolean): void => undefined;
  scene.storage.pruning = new Promise((resolve) => {
    pruned = resolve;
  });
  const cleaning = scene.market.central.tendBackups();
  await expect.poll(() => scene.storage.pruned.length).toBe(1);
  await scene.runOn(scene.other.id, id);
  expect(otherHost().operations.calls).toEqual([]);
  pruned(true);
  await cleaning;
  await scene.later(2_000);
  expect(otherHost().operations.calls).toHaveLength(1);
  await db.updateTable('volumes').set({ has_waste: 1 }).execute();
  await scene.market.central.tendBackups();
  expect(scene.storage.pruned).toHaveLength(1);
});

it('rejects the removal of a node until its volumes are saved, for at most a day', async () => {
  const id = await scene.make();
  const podId = await scene.runOn(scene.node.id, id);
  await left(podId);
  const remove = async () => {
    const token = await scene.market.logIn();
    return scene.market.portal('DELETE', `/executors/${scene.node.id}`, { token });
  };
  expect((await remove()).body.message).toContain('being saved');
  await scene.later(DAY_MS);
  expect((await remove()).status).toBe(200);
});
