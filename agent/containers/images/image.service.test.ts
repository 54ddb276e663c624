import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { createFakeEngine } from '../../../test/fakes/engine/fake-engine.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { openDatabase } from '../../database/database.ts';
import { BUILTIN_REFERENCE, builtinTar } from './builtin-image.ts';
import { createImageService, ImageDigestMismatch, MAX_PARALLEL_PULLS } from './image.service.ts';
import { createImageStore } from './image.store.ts';

const NEVER = new AbortController().signal;
const DIGEST = `sha256:${'a1'.repeat(32)}`;
const ignore = () => undefined;

function createService(busyboxPath = '/bin/busybox') {
  const clock = createManualClock();
  const engine = createFakeEngine(clock);
  const store = createImageStore(openDatabase(':memory:'));
  const logins = { scopeOf: (auth: { username: string } | undefined) => auth?.username ?? '' };
  return {
    engine,
    store,
    images: createImageService({ engine, store, logins, clock, busyboxPath }),
  };
}

it('rejects an image with another digest than requested', async () => {
  const { engine, images } = createService();
  engine.addImage(`registry.example/one@${DIGEST}`, null);
  const pinned = { reference: 'registry.example/one:1', digest: DIGEST };
  await expect(images.ensure(pinned, ignore, NEVER)).rejects.toThrow(ImageDigestMismatch);
});

it('queries the registry again for another login', async () => {
  const { engine, images } = createService();
  engine.addImage('registry.example/one:1', DIGEST);
  const calls: string[] = [];
  engine.hook = async (moment, method) => {
    if (moment === 'before' && method === 'resolveDigest') calls.push(method);
  };
  const ensure = (username?: string) => {
    const auth = { host: 'registry.example', username: username ?? '', password: 'x' };
    const wanted = { reference: 'registry.example/one:1', digest: DIGEST };
    return images.ensure(
      { ...wanted, auth: username === undefined ? undefined : auth },
      ignore,
      NEVER,
    );
  };
  for (const [username, asked] of [
    ['ann', 1],
    ['ann', 1],
    ['bob', 2],
    ['ann', 2],
    ['bob', 2],
    // An image that was pulled without a login is public, so every login may use it.
    [undefined, 3],
    ['eve', 3],
  ] as const) {
    await ensure(username);
    expect([username, calls.length]).toEqual([username, asked]);
  }
});

it('records only images that were not there before', async () => {
  const { engine, images, store } = createService();
  const own = 'registry.example/own:1';
  const provider = 'registry.example/provider:1';
  engine.addImage(own, DIGEST);
  engine.addImage(provider, DIGEST);
  const pulled = `registry.example/provider@${DIGEST}`;
  await engine.pullImage(pulled, { onProgress: ignore }, NEVER);
  await images.ensure({ reference: own }, ignore, NEVER);
  await images.ensure({ reference: provider }, ignore, NEVER);
  expect(store.list().map(({ reference }) => reference)).toEqual([
    `registry.example/own@${DIGEST}`,
  ]);
});

it('limits the number of concurrent pulls', async () => {
  const { engine, images } = createService();
  let most = 0;
  let now = 0;
  engine.hook = async (moment, method) => {
    if (method !== 'pullImage') return;
    now += moment === 'before' ? 1 : -1;
    most = Math.max(most, now);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const names = Array.from({ length: 10 }, (_, n) => `registry.example/${n}:1`);
  for (const [index, reference] of names.entries()) {
    engine.addImage(reference, `sha256:${String(index).repeat(64)}`);
  }
  await Promise.all(names.map((reference) => images.ensure({ reference }, ignore, NEVER)));
  expect(most).toBe(MAX_PARALLEL_PULLS);
});

it('names the missing package if there is no busybox', async () => {
  const { images } = createService('/nowhere/busybox');
  const ensure = images.ensure({ reference: BUILTIN_REFERENCE }, ignore, NEVER);
  await expect(ensure).rejects.toThrow(/busybox-static/);
});

it('creates an identical built-in image every time', async () => {
  const hashes = await Promise.all(
    [1, 2].map(async () => {
      const hash = createHash('sha256');
      for await (const chunk of await builtinTar(new Uint8Array([1, 2, 3]))) hash.update(chunk);
      return hash.digest('hex');
    }),
  );
  expect(hashes[0]).toBe(hashes[1]);
});
