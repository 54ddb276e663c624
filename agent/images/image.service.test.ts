import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { createFakeEngine } from '../../test/fakes/fake-engine.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { BUILTIN_REFERENCE, builtinTar } from './builtin-image.ts';
import { createImageService, ImageDigestMismatch, MAX_PARALLEL_PULLS } from './image.service.ts';

const NEVER = new AbortController().signal;
const DIGEST = `sha256:${'a1'.repeat(32)}`;
const ignore = () => undefined;

function createService(busyboxPath = '/bin/busybox') {
  const engine = createFakeEngine(createManualClock());
  return { engine, images: createImageService({ engine, busyboxPath }) };
}

it('refuses an image that carries another digest than the one asked for', async () => {
  const { engine, images } = createService();
  engine.addImage(`registry.example/one@${DIGEST}`, null);
  const pinned = { reference: 'registry.example/one:1', digest: DIGEST };
  await expect(images.ensure(pinned, ignore, NEVER)).rejects.toThrow(ImageDigestMismatch);
});

it('takes Docker Hub’s short and long names for one', async () => {
  const { engine, images } = createService();
  engine.addImage('docker.io/library/one:latest', DIGEST);
  const ready = await images.ensure({ reference: 'docker.io/library/one' }, ignore, NEVER);
  expect(ready.digest).toBe(DIGEST);
});

it('runs a bounded number of pulls at a time', async () => {
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
  for (const reference of names) engine.addImage(reference, DIGEST);
  await Promise.all(names.map((reference) => images.ensure({ reference }, ignore, NEVER)));
  expect(most).toBe(MAX_PARALLEL_PULLS);
});

it('says which package is missing when there is no busybox', async () => {
  const { images } = createService('/nowhere/busybox');
  const ensure = images.ensure({ reference: BUILTIN_REFERENCE }, ignore, NEVER);
  await expect(ensure).rejects.toThrow(/busybox-static/);
});

it('makes the same built-in image every time', async () => {
  const hashes = await Promise.all(
    [1, 2].map(async () => {
      const hash = createHash('sha256');
      for await (const chunk of await builtinTar(new Uint8Array([1, 2, 3]))) hash.update(chunk);
      return hash.digest('hex');
    }),
  );
  expect(hashes[0]).toBe(hashes[1]);
});
