import { request } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { systemRandom } from '#shared/random.ts';
import { type FakeRegistry, startFakeRegistry } from '../../test/fakes/fake-registry.ts';
import { createDockerodeEngine } from '../docker/dockerode-engine.ts';
import { createImageService } from './image.service.ts';

const SOCKET = '/var/run/docker.sock';
const NEVER = new AbortController().signal;
const engine = createDockerodeEngine({ socketPath: SOCKET, clock: systemClock });
const images = createImageService({ engine, busyboxPath: '/bin/busybox' });
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
});

afterAll(async () => {
  for (const imageId of pulled) await removeImage(imageId);
  await registry.close();
});

/** The engine port removes no images, on purpose: the agent does not either. */
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

it('finds the digest behind a tag, and keeps to it when the tag moves', async () => {
  const digest = registry.publish(name, '1', systemRandom.uuid());
  const first = await ensure('1');
  expect(first.digest).toBe(digest);
  const moved = registry.publish(name, '1', systemRandom.uuid());
  const before = registry.requests();
  expect(await ensure('1', digest)).toEqual(first);
  expect(registry.requests()).toBe(before);
  expect((await ensure('1')).digest).toBe(moved);
});

it('pulls exactly the digest that is asked for', async () => {
  const digest = registry.publish(name, '1', systemRandom.uuid());
  registry.publish(name, '1', systemRandom.uuid());
  expect((await ensure('1', digest)).digest).toBe(digest);
});

it('shares one pull between those who want the same image', async () => {
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
])('tells a registry that answers %i %s as %s', async (status, code, kind) => {
  registry.refuseWith(status, code);
  await expect(ensure('1')).rejects.toMatchObject({ kind });
});

it('tells a missing tag and a missing digest apart from a registry that is gone', async () => {
  registry.publish(name, '1', systemRandom.uuid());
  await expect(ensure('none')).rejects.toMatchObject({ kind: 'image_not_found' });
  const digest = `sha256:${'0'.repeat(64)}`;
  await expect(ensure('1', digest)).rejects.toMatchObject({ kind: 'image_not_found' });
  const gone = { reference: '127.0.0.1:1/x/y:1' };
  const refusal = images.ensure(gone, ignore, NEVER);
  await expect(refusal).rejects.toMatchObject({ kind: 'image_unreachable' });
});

it('gives up a pull at once when nobody wants it any more', async () => {
  registry.publish(name, '1', systemRandom.uuid());
  registry.setStalling(true);
  const leaving = new AbortController();
  const reference = `${registry.host}/${name}:1`;
  const started = Promise.withResolvers<void>();
  const onProgress = (progress: { layers_total: number }) => {
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

it('makes the built-in image, and no other under its name', async () => {
  const made = await images.ensure({ reference: 'podwright.local/base:1' }, ignore, NEVER);
  expect(made).toEqual({ imageId: expect.stringMatching(/^sha256:/), digest: null });
  const other = images.ensure({ reference: 'podwright.local/other:1' }, ignore, NEVER);
  await expect(other).rejects.toMatchObject({ kind: 'image_not_found' });
});
