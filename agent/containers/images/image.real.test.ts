import { request } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { PullProgress } from '#shared/api/agent/images.ts';
import { type Clock, systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import {
  type FakeRegistry,
  startFakeRegistry,
} from '../../../test/fakes/external/fake-registry.ts';
import { openDatabase } from '../../database/database.ts';
import { createDockerodeEngine } from '../engine/dockerode-engine.ts';
import { PULL_IDLE_MS } from '../engine/pull-stream.ts';
import { createImageService } from './image.service.ts';
import { createImageStore } from './image.store.ts';
import { createRegistryAuthStore, createRegistryLogins } from './registry-logins.ts';

const SOCKET = '/var/run/docker.sock';
const NEVER = new AbortController().signal;
const engine = createDockerodeEngine({ socketPath: SOCKET, clock: systemClock });
const secret = systemRandom.bytes(32);
const log = createLog({ name: 'test', level: 'silent' });

/** Creates an image service with an empty store: images pulled through another store are not the agent's. */
function newImages(clock: Clock = systemClock) {
  const database = openDatabase(':memory:');
  const authStore = createRegistryAuthStore(database);
  const logins = createRegistryLogins({ store: authStore, secret, random: systemRandom, log });
  const store = createImageStore(database);
  const own = createDockerodeEngine({ socketPath: SOCKET, clock });
  const busyboxPath = '/bin/busybox';
  return createImageService({ engine: own, store, logins, clock, busyboxPath });
}
const images = newImages();
const ignore = () => undefined;

let registry: FakeRegistry;
let name: string;
const pulled = new Set<string>();

beforeAll(async () => {
  registry = await startFakeRegistry();
});

beforeEach(() => {
  name = `podwright-test/${systemRandom.uuid()}`;
  registry.refuseWith(null);
  registry.setStalling(false);
  registry.setBytesPerSecond(null);
  registry.requireLogin(null);
  registry.setForging(false);
});

afterAll(async () => {
  for (const imageId of pulled) await removeImage(imageId);
  await registry.close();
});

/** Removes the image by its id, whatever names it has. */
function removeImage(imageId: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const path = `/images/${imageId}?force=1`;
    request({ socketPath: SOCKET, method: 'DELETE', path }, (response) => {
      response.resume().once('end', resolve);
    })
      .once('error', reject)
      .end();
  });
}

async function ensure(tag: string, digest?: string) {
  const reference = `${registry.host}/${name}:${tag}`;
  const wanted = digest === undefined ? { reference } : { reference, digest };
  const ready = await images.ensure(wanted, ignore, NEVER);
  pulled.add(ready.imageId);
  return ready;
}

it('resolves a tag to a digest, and keeps the image of that digest when the tag moves', async () => {
  const digest = registry.publish(name, '1', systemRandom.uuid());
  const first = await ensure('1');
  expect(first.digest).toBe(digest);
  const moved = registry.publish(name, '1', systemRandom.uuid());
  const before = registry.requests();
  expect(await ensure('1', digest)).toEqual(first);
  expect(registry.requests()).toBe(before);
  expect((await ensure('1')).digest).toBe(moved);
});

it('pulls exactly the requested digest', async () => {
  const digest = registry.publish(name, '1', systemRandom.uuid());
  registry.publish(name, '1', systemRandom.uuid());
  expect((await ensure('1', digest)).digest).toBe(digest);
});

it('shares one pull between pods with the same image', async () => {
  registry.publish(name, '1', systemRandom.uuid());
  const before = registry.requests();
  const [one, ...others] = await Promise.all([ensure('1'), ensure('1'), ensure('1')]);
  const shared = registry.requests() - before;
  expect(others).toEqual([one, one]);
  registry.publish(name, '2', systemRandom.uuid());
  const again = registry.requests();
  await ensure('2');
  expect(shared).toBeLessThanOrEqual(registry.requests() - again + 1);
});

it.each([
  [401, 'UNAUTHORIZED', 'image_auth'],
  [403, 'DENIED', 'image_auth'],
  [429, 'TOOMANYREQUESTS', 'image_rate_limited'],
  [404, 'MANIFEST_UNKNOWN', 'image_not_found'],
  [404, 'NAME_UNKNOWN', 'image_not_found'],
  [503, 'UNAVAILABLE', 'image_unreachable'],
])('maps a registry’s status %i %s to %s', async (status, code, kind) => {
  registry.refuseWith(status, code);
  await expect(ensure('1')).rejects.toMatchObject({ kind });
});

it('distinguishes a missing tag or digest from an unreachable registry', async () => {
  registry.publish(name, '1', systemRandom.uuid());
  await expect(ensure('none')).rejects.toMatchObject({ kind: 'image_not_found' });
  const digest = `sha256:${'0'.repeat(64)}`;
  await expect(ensure('1', digest)).rejects.toMatchObject({ kind: 'image_not_found' });
  const gone = { reference: '127.0.0.1:1/x/y:1' };
  const refusal = images.ensure(gone, ignore, NEVER);
  await expect(refusal).rejects.toMatchObject({ kind: 'image_unreachable' });
});

it('aborts a pull at once when its last waiter leaves', async () => {
  registry.publish(name, '1', 'fresh', { layers: [systemRandom.bytes(1_000)] });
  registry.setStalling(true);
  const leaving = new AbortController();
  const reference = `${registry.host}/${name}:1`;
  const started = Promise.withResolvers<void>();
  const onProgress = (progress: PullProgress) => {
    if (progress.layers_total > 0) started.resolve();
  };
  const outcome = images.ensure({ reference }, onProgress, leaving.signal).then(
    () => 'pulled',
    () => 'given up',
  );
  await started.promise;
  leaving.abort();
  expect(await outcome).toBe('given up');
  registry.setStalling(false);
  expect((await ensure('1')).digest).toMatch(/^sha256:/);
});

it('creates the built-in image, and rejects other images at its registry host', async () => {
  const made = await images.ensure({ reference: 'podwright.local/base:1' }, ignore, NEVER);
  expect(made).toEqual({ imageId: expect.stringMatching(/^sha256:/), digest: null });
  const other = images.ensure({ reference: 'podwright.local/other:1' }, ignore, NEVER);
  await expect(other).rejects.toMatchObject({ kind: 'image_not_found' });
});

it('reports progress per layer, speed and remaining time', async () => {
  const layers = [200_000, 300_000].map((bytes) => systemRandom.bytes(bytes));
  registry.publish(name, '1', 'big', { layers });
  registry.setBytesPerSecond(150_000);
  const seen: PullProgress[] = [];
  const wanted = { reference: `${registry.host}/${name}:1` };
  const ready = await images.ensure(wanted, (progress) => seen.push(progress), NEVER);
  pulled.add(ready.imageId);
  const last = seen.at(-1);
  expect(last).toMatchObject({ layers_done: 2, layers_total: 2, bytes_done: last?.bytes_total });
  expect(last?.bytes_total).toBeGreaterThan(500_000);
  expect(last?.bytes_extracted).toBe(last?.bytes_total);
  const onTheWay = seen.filter(({ eta_seconds }) => eta_seconds !== null && eta_seconds > 0);
  expect(onTheWay.length).toBeGreaterThan(0);
  const states = new Set(seen.flatMap((p) => p.layers.map(({ state }) => state)));
  expect([...states]).toEqual(expect.arrayContaining(['downloading', 'extracting', 'done']));
  // Two layers download at once, each limited by the registry.
  const fastest = Math.max(...seen.map((progress) => progress.bytes_per_second));
  expect(fastest).toBeGreaterThan(100_000);
  expect(fastest).toBeLessThan(600_000);
});

it('pulls with the right login, and reports a wrong or missing one', async () => {
  registry.publish(name, '1', systemRandom.uuid());
  registry.requireLogin({ username: 'ann', password: 's3cret' });
  const reference = `${registry.host}/${name}:1`;
  const auth = (password: string) => ({ host: registry.host, username: 'ann', password });
  const refused = { kind: 'image_auth' };
  await expect(images.ensure({ reference }, ignore, NEVER)).rejects.toMatchObject(refused);
  const wrong = images.ensure({ reference, auth: auth('guess') }, ignore, NEVER);
  await expect(wrong).rejects.toMatchObject(refused);
  const ready = await images.ensure({ reference, auth: auth('s3cret') }, ignore, NEVER);
  pulled.add(ready.imageId);
  expect(ready.digest).toMatch(/^sha256:/);
});

it('denies access to an image that only another login has pulled', async () => {
  const digest = registry.publish(name, '1', systemRandom.uuid());
  registry.requireLogin({ username: 'ann', password: 's3cret' });
  const wanted = { reference: `${registry.host}/${name}:1`, digest };
  const auth = { host: registry.host, username: 'ann', password: 's3cret' };
  pulled.add((await images.ensure({ ...wanted, auth }, ignore, NEVER)).imageId);
  const stranger = images.ensure(wanted, ignore, NEVER);
  await expect(stranger).rejects.toMatchObject({ kind: 'image_auth' });
});

it('does not move the host’s own tags', async () => {
  registry.publish(name, '1', systemRandom.uuid());
  const reference = `${registry.host}/${name}:1`;
  await ensure('1');
  expect(await engine.inspectImage(reference)).toBeNull();
});

it('detects content that does not match the digest', async () => {
  registry.publish(name, '1', systemRandom.uuid());
  registry.setForging(true);
  await expect(ensure('1')).rejects.toMatchObject({ kind: 'image_digest_mismatch' });
});

it('aborts a pull without progress', async () => {
  registry.publish(name, '1', 'fresh', { layers: [systemRandom.bytes(1_000)] });
  registry.setStalling(true);
  // Shortens the wait for the idle limit to 1.5 s.
  const hasty: Clock = {
    ...systemClock,
    sleep: (ms, signal) => systemClock.sleep(ms === PULL_IDLE_MS ? 1_500 : ms, signal),
  };
  const stalled = newImages(hasty).ensure(
    { reference: `${registry.host}/${name}:1` },
    ignore,
    NEVER,
  );
  await expect(stalled).rejects.toMatchObject({ kind: 'image_stalled' });
});
