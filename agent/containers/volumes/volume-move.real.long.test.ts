/** Moves a volume between hosts, with the real engine and the real restic. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { OperationView } from '#shared/api/agent/operations.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import {
  command,
  createRealHost,
  mustRun,
  type RealHost,
} from '../../../test/fakes/agents/real-host.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import { attributeAt, writeWithAttribute } from '../../../test/fakes/extended-attributes.ts';
import { writeQuickRepository } from '../../../test/fakes/external/quick-repository.ts';
import { fingerprintOf } from '../../../test/fakes/mixed-tree.ts';
import { PASSWORD } from '../../../test/fakes/scenes/backup-scene.ts';
import { copyBackup, copyRestore, folderOfCopy } from '../../../test/fakes/scenes/volume-copy.ts';

// Long, because restic runs at the lowest priority.
vi.setConfig({ testTimeout: 180_000 });
const WITHIN_MS = 120_000;
const folder = mkdtempSync(join(tmpdir(), 'podwright-volumes-'));
const repository = { location: join(folder, 'repository'), password: PASSWORD };
const ends: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
  rmSync(folder, { recursive: true });
});

async function newHost(): Promise<RealHost> {
  const host = await createRealHost();
  ends.push(host.close);
  return host;
}

async function call(
  { agent }: RealHost,
  method: 'PUT' | 'POST' | 'DELETE',
  url: string,
  payload = {},
) {
  const response = await agent.server.inject({ method, url, payload });
  return { status: response.statusCode, body: response.json() };
}

/** Waits for the end of an operation on a host. */
async function done({ agent }: RealHost, id: string): Promise<OperationView> {
  const look = () => {
    const view = OperationView.parse(agent.operations.get(id));
    return view.finished_ms === null ? null : view;
  };
  return eventually('the end of an operation', look, WITHIN_MS);
}

/** All kinds of files that a pod may have, including cache folders and links that point outside. */
const WRITE = `cd /mnt && mkdir -p deep/er cache && echo data > deep/er/file && echo any > random && chmod 4711 deep/er/file
chown 1000:1001 deep && chmod 2750 deep && ln deep/er/file hard && ln -s /etc/passwd out && ln -s ../../.. up
mkfifo pipe && echo 'Signature: 8a477f597d28d172789f06886806bc55' > cache/CACHEDIR.TAG && echo warm > cache/entry
chmod 1777 /mnt && chown 7:8 /mnt && touch /mnt/written && sleep 3600`;

it('moves a volume’s data from a pod to a pod on another host', async () => {
  writeQuickRepository(repository.location, PASSWORD);
  const [from, to] = [await newHost(), await newHost()];
  const volume_id = systemRandom.uuid();
  const [first, second] = [systemRandom.uuid(), systemRandom.uuid()];
  const put = { volume_id, size_bytes: 2 ** 30 };
  expect((await call(from, 'PUT', `/v1/volumes/${first}`, put)).status).toBe(200);
  const pod = await from.launch(WRITE, { volume: { id: first } });
  const live = await folderOfCopy(first);
  const written = async () => (await command('test', '-e', join(live, 'written'))).exitCode === 0;
  await eventually('the pod has written', written);
  const attribute = { key: 'user.podwright', value: 'kept' };
  writeWithAttribute(live, 'random', 'any', attribute);
  const before = fingerprintOf(live);
  expect(before.length).toBeGreaterThan(9);

  // A restore is rejected while a pod has the volume.
  const operation = systemRandom.uuid();
  const early = copyRestore(operation, 'a'.repeat(64), repository);
  expect((await call(from, 'POST', `/v1/volumes/${first}/restores`, early)).status).toBe(409);
  expect((await call(from, 'DELETE', `/v1/volumes/${first}`)).status).toBe(409);
  await from.remove(pod.id);
  await eventually('the pod is gone', async () => (await from.view(pod.id)).phase === 'removed');

  await call(from, 'POST', `/v1/volumes/${first}/backups`, copyBackup(operation, repository));
  const saved = await done(from, operation);
  expect(saved).toMatchObject({ stage: 'done', quality: 'full', pod_id: first });
  await from.agent.core.volumeWatch.runOnce();
  const [measured] = await from.agent.core.persistentVolumes.list();
  // The count excludes the folder itself, and hard links count once.
  expect(measured?.files).toBe(before.length - 2);
  expect((await call(from, 'DELETE', `/v1/volumes/${first}`)).body.state).toBe('removed');

  await call(to, 'PUT', `/v1/volumes/${second}`, put);
  const back = systemRandom.uuid();
  await call(
    to,
    'POST',
    `/v1/volumes/${second}/restores`,
    copyRestore(back, saved.snapshot_id, repository),
  );
  expect(await done(to, back)).toMatchObject({ stage: 'done', error: null });
  const restored = await folderOfCopy(second);
  expect(fingerprintOf(restored)).toEqual(before);
  expect(attributeAt(join(restored, 'random'), attribute.key)).toBe(attribute.value);
  const reader = await to.launch('cat /mnt/deep/er/file; sleep 3600', { volume: { id: second } });
  const read = await mustRun('docker', 'exec', reader.container_id ?? '', 'cat', '/mnt/hard');
  expect(read).toBe('data\n');
});
