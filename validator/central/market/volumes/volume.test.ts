import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '#shared/runtime/errors.ts';
import { flatRefusal } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createVolumeScene, type VolumeScene } from '../../../../test/fakes/scenes/volume-scene.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';

let scene: VolumeScene;
beforeEach(async () => {
  scene = await createVolumeScene({ volumeLimitBytes: 5 * 1024 ** 3 });
});
afterEach(() => scene.close());

it('creates, shows, changes and deletes volumes', async () => {
  const { volumes } = scene;
  expect((await volumes('GET')).body).toEqual([]);
  const made = await volumes('POST', '', { name: ' my data, v1.0 (old)/x! ', description: null });
  expect(made.status).toBe(200);
  expect(made.body).toEqual({
    id: expect.any(String),
    name: 'my data, v1.0 (old)/x!',
    description: '',
    current_size_bytes: 0,
    current_size_mb: 0,
    current_size_gb: 0,
    current_file_count: 0,
    last_metrics_update: null,
    attached_pod_id: null,
    size_limit_bytes: 5 * 1024 ** 3,
    status: 'available',
    executor_id: null,
    last_saved_at: null,
    progress: null,
    message: null,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const { id } = made.body;
  const own = (method: 'PUT' | 'DELETE', body?: object) =>
    scene.call(method, `/volumes/${id}`, body);
  const described = await own('PUT', { name: 'new', description: 'words' });
  expect(described.body).toMatchObject({ id, name: 'new', description: 'words' });
  expect((await own('PUT', { name: 'newer' })).body.description).toBe('words');
  expect((await own('PUT', { description: '' })).body).toMatchObject({
    name: 'newer',
    description: '',
  });
  expect(await own('PUT', {})).toMatchObject({ status: 400, body: { success: false } });
  await scene.market.clock.advance(1);
  const second = await scene.make('new');
  expect((await volumes('GET')).body.map((row: { id: string }) => row.id)).toEqual([id, second]);
  expect((await volumes('GET', `/${id}`)).body.name).toBe('newer');

  expect((await own('DELETE')).body).toMatchObject({ id, name: 'newer' });
  expect((await own('DELETE')).body).toEqual(flatRefusal(`There is no volume ${id}`));
  expect((await volumes('GET')).body).toHaveLength(1);
});

it('creates one volume for a repeated Idempotency-Key', async () => {
  const headers = { ...scene.account.key, 'idempotency-key': 'once' };
  const first = await scene.volumes('POST', '', { name: 'one' }, headers);
  const again = await scene.volumes('POST', '', { name: 'one' }, headers);
  expect(again.body).toEqual(first.body);
  expect(again.headers['idempotent-replayed']).toBe('true');
  expect((await scene.volumes('GET')).body).toHaveLength(1);
});

it.each([
  [{}, 422],
  [{ name: '' }, 422],
  [{ name: 'n'.repeat(101) }, 422],
  [{ name: 'semi;colon' }, 422],
  [{ name: 'two\nlines' }, 422],
  [{ name: 'x', description: 'd'.repeat(1_001) }, 422],
  [{ name: 'n'.repeat(100) }, 200],
] as const)('answers the request to create the volume %j with %i', async (body, status) => {
  const answer = await scene.volumes('POST', '', body);
  expect(answer.status).toBe(status);
  if (status === 422) expect(answer.body).toEqual(flatRefusal(expect.any(String)));
});

it('limits an account to fifty volumes, without counting deleted volumes', async () => {
  const { db } = scene.market.ports;
  const first = await scene.make();
  const row = await db.selectFrom('volumes').selectAll().executeTakeFirstOrThrow();
  const more = Array.from({ length: 49 }, (_, index) => ({ ...row, id: `${row.id}-${index}` }));
  await db.insertInto('volumes').values(more).execute();
  const refused = await scene.volumes('POST', '', { name: 'one more' });
  expect(refused.status).toBe(400);
  expect(refused.body).toEqual(flatRefusal('An account has at most 50 volumes'));
  await scene.volumes('DELETE', `/${first}`);
  expect((await scene.volumes('POST', '', { name: 'one more' })).status).toBe(200);
});

it('hides volumes of other accounts, and returns errors of current-stats in the standard envelope', async () => {
  const id = await scene.make();
  const stranger = await scene.market.renter();
  const theirs = scene.market.below('/volumes', stranger);
  expect((await theirs('GET')).body).toEqual([]);
  for (const method of ['GET', 'DELETE'] as const) {
    expect((await theirs(method, `/${id}`)).status).toBe(403);
    expect((await theirs(method, `/${NOWHERE}`)).status).toBe(404);
  }
  const stats = await theirs('GET', `/${id}/current-stats`);
  expect([stats.status, stats.body.error.code]).toEqual([403, 'forbidden']);
  const absent = await scene.volumes('GET', `/${NOWHERE}/current-stats`);
  expect([absent.status, absent.body.error.code]).toEqual([404, 'volume_not_found']);
  expect((await scene.rentOn(scene.node.id, id, stranger)).body.error.code).toBe('forbidden');
  expect((await scene.rentOn(scene.node.id, NOWHERE)).body.error.code).toBe('volume_not_found');
  const nobody = await scene.market.call('GET', '/volumes');
  expect([nobody.status, nobody.body]).toEqual([401, flatRefusal(expect.any(String))]);
});

it('attaches a volume to one pod, shows it in the pod, and rejects a second pod', async () => {
  const id = await scene.make();
  const rented = await scene.rentOn(scene.node.id, id);
  expect(rented.body).toMatchObject({
    volume: { id, name: 'data', status: 'restoring', attached_pod_id: rented.body.id },
  });
  await scene.market.sync();
  const shown = { id, status: 'attached', executor_id: scene.node.id };
  expect((await scene.pod(rented.body.id)).volume).toMatchObject(shown);
  expect((await scene.call('GET', '/pods')).body[0].volume).toMatchObject(shown);
  const spec = scene.host.specs.get(rented.body.id);
  expect(spec?.volume).toEqual({ id: scene.copyOn(scene.node.id) });

  const free = await scene.freeGpus();
  const second = await scene.rentOn(scene.other.id, id);
  expect([second.status, second.body.error.code]).toEqual([409, 'conflict']);
  expect(second.body.details).toEqual({ attached_pod_id: rented.body.id });
  expect(await scene.freeGpus()).toBe(free);
  const deletion = await scene.volumes('DELETE', `/${id}`);
  expect([deletion.status, deletion.body.success]).toEqual([400, false]);
});

it('attaches a volume to one of several concurrent rentals, whose Idempotency-Key returns the same pod', async () => {
  const id = await scene.make();
  const nodes = [scene.node.id, scene.other.id, scene.node.id, scene.other.id];
  const body = { gpu_count: 1, volume_id: id };
  const answers = await Promise.all(
    nodes.map((nodeId, index) =>
      scene.market.rent(scene.account, nodeId, body, { 'idempotency-key': `rival-${index}` }),
    ),
  );
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409]);
  const winner = answers.findIndex(({ status }) => status === 200);
  const again = await scene.market.rent(scene.account, nodes[winner] ?? '', body, {
    'idempotency-key': `rival-${winner}`,
  });
  expect([again.status, again.body.id]).toEqual([200, answers[winner]?.body.id]);
  const copies = await scene.market.ports.db.selectFrom('volume_copies').selectAll().execute();
  expect(copies).toHaveLength(1);
});

it('rents by a specification with a volume; a dry run does not attach it', async () => {
  const id = await scene.make();
  const body = { pod_name: 'mine', template_id: null, gpu_count: 1, volume_id: id };
  const template_id = (await scene.template()).id;
  const dry = await scene.call('POST', '/executors/rent-by-spec', {
    ...body,
    template_id,
    dry_run: true,
  });
  expect(dry.status).toBe(200);
  expect((await scene.volume(id)).attached_pod_id).toBeNull();
  const real = await scene.call('POST', '/executors/rent-by-spec', { ...body, template_id });
  expect(real.body.pod.volume).toMatchObject({ id, attached_pod_id: real.body.pod_id });
});

it('rejects templates that use the mount path of the volume, in rentals and in edits', async () => {
  const id = await scene.make();
  const template = await scene.template({ volumes: ['/mnt/cache'] });
  const refused = await scene.market.rent(scene.account, scene.node.id, {
    gpu_count: 1,
    volume_id: id,
    template_id: template.id,
  });
  expect([refused.status, refused.body.error.code]).toEqual([400, 'template_invalid']);
  const podId = await scene.runOn(scene.node.id, id);
  const edit = await scene.call('PUT', `/pods/${podId}`, { volumes: ['/mnt'] });
  expect([edit.status, edit.body.error.code]).toEqual([400, 'template_invalid']);
  await scene.call('PUT', `/pods/${podId}`, { environment: { A: '1' } });
  await scene.later();
  expect(scene.host.specs.get(podId)).toMatchObject({ generation: 2, volume: expect.anything() });
});

it("accepts in a reboot the id of the pod's volume or no id, and rejects any other id", async () => {
  const id = await scene.make();
  const podId = await scene.runOn(scene.node.id, id);
  const other = await scene.post(podId, 'reboot', { volume_id: await scene.make('other') });
  expect([other.status, other.body.error.code]).toEqual([400, 'bad_request']);
  expect((await scene.post(podId, 'reboot', { volume_id: id })).body).toMatchObject({
    status: 'REBOOT_PENDING',
    volume: { id },
  });
});

describe('a reboot with a volume', () => {
  const reboot = (podId: string, volume_id: string) => scene.post(podId, 'reboot', { volume_id });
  const settle = async () => {
    for (let pass = 0; pass < 3; pass += 1) await scene.later(2_000);
  };

  it('mounts the volume in a new container once the node has the volume’s data', async () => {
    const id = await scene.saved();
    const podId = await scene.running();
    const { status, body } = await reboot(podId, id);
    expect([status, body]).toMatchObject([200, { status: 'REBOOT_PENDING', volume: { id } }]);
    await scene.later();
    // The former container runs while the node restores the data.
    expect(scene.host.specs.get(podId)?.volume).toBeUndefined();
    expect(await scene.pod(podId)).toMatchObject({ phase: 'restoring' });
    scene.host.operations.finish(scene.operationOn(scene.node.id)?.id ?? '');
    await settle();
    const copy = scene.copyOn(scene.node.id);
    expect(scene.host.specs.get(podId)).toMatchObject({ generation: 2, volume: { id: copy } });
    const pod = await scene.pod(podId);
    expect(pod).toMatchObject({ status: 'RUNNING', volume: { id, attached_pod_id: podId } });
  });

  it('refuses a volume of another pod, and detaches the volume if the node refuses the container', async () => {
    const id = await scene.make();
    const owner = await scene.runOn(scene.node.id, id);
    const podId = await scene.running();
    const taken = await reboot(podId, id);
    expect([taken.status, taken.body.error.code]).toEqual([409, 'conflict']);
    expect((await scene.pod(podId)).status).toBe('RUNNING');
    await scene.savedFrom(scene.node.id, owner);
    scene.host.refusal = new ApiError('spec_refused', 'no room for the volume');
    await reboot(podId, id);
    await scene.later();
    scene.host.operations.finish(scene.operationOn(scene.node.id)?.id ?? '');
    await settle();
    expect(await scene.pod(podId)).toMatchObject({ status: 'RUNNING', volume: null });
    const failed = { sub_event_type: 'pod-reboot.failed', error: 'no room for the volume' };
    expect(await scene.events(podId)).toContainEqual(expect.objectContaining(failed));
    expect(await scene.volume(id)).toMatchObject({ attached_pod_id: null });
  });
});

it("returns the node's measurements of a volume, and marks old measurements as stale", async () => {
  const id = await scene.make();
  await scene.runOn(scene.node.id, id);
  const stats = async () => (await scene.volumes('GET', `/${id}/current-stats`)).body;
  expect(await stats()).toMatchObject({ current_size_bytes: 0, stale: false });
  scene.host.volumes.measure(scene.copyOn(scene.node.id), 3 * 2 ** 20, 7, 1_000);
  await scene.later(30_000);
  expect(await stats()).toMatchObject({
    volume_id: id,
    current_size_bytes: 3 * 2 ** 20,
    current_size_mb: 3,
    stale: false,
    current_file_count: 7,
    last_metrics_update: expect.any(String),
  });
  scene.host.up = false;
  await scene.later(600_000);
  expect(await stats()).toMatchObject({ current_size_mb: 3, stale: true });
});

it('deletes the volumes and their data with the account', async () => {
  const id = await scene.saved();
  await scene.market.call('DELETE', '/users/me', { headers: scene.account.session });
  await scene.market.central.tendBackups();
  expect(scene.storage.removed).toEqual([id]);
  expect(await scene.market.ports.db.selectFrom('volumes').selectAll().execute()).toEqual([]);
});
