import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import {
  BUILD_BASE,
  type BuildScene,
  createBuildScene,
  NO_BUILD_OBJECTS,
} from '../../../test/fakes/scenes/build-scene.ts';

let scene: BuildScene;
beforeAll(async () => {
  scene = await createBuildScene();
});
afterEach(() => scene.clear());
afterAll(() => scene.close());

it('builds an identical Dockerfile once, also for concurrent pods', async () => {
  const text = `${BUILD_BASE}\nRUN head -c 9 /dev/urandom | base64 > /once`;
  const [one, two] = await Promise.all([scene.build(text), scene.build(text)]);
  expect(two).toEqual(one);
  expect(await scene.build(text)).toEqual(one);
  expect((await scene.build(`${text}\nRUN true`)).imageId).not.toBe(one.imageId);
});

it('builds multiple stages and copies files between them', async () => {
  const text = `ARG B=podwright.local/base\nFROM $B:1 AS one\nRUN echo from-one > /f\nFROM scratch AS two\nCOPY --from=one /f /f\n${BUILD_BASE}\nCOPY --from=two /f /g\nCOPY --from=podwright.local/base:1 /etc/group /h\nRUN cat /g /h`;
  await scene.build(text);
  expect(await scene.outputOf(text)).toMatch(/from-one\nroot:x:0/);
  expect(await scene.leftOvers()).toEqual(NO_BUILD_OBJECTS);
});

it('limits memory, processes and disk of a step', async () => {
  await expect(
    scene.build(
      `${BUILD_BASE}\nRUN awk 'BEGIN { s = "x"; while (length(s) < 536870912) s = s s }'`,
    ),
  ).rejects.toMatchObject({
    message: expect.stringMatching(/non-zero code: 137/),
  });
  const forks = `${BUILD_BASE}\nRUN sleep 2; for n in $(seq 1 90); do sleep 9 & done; wait`;
  await expect(scene.build(forks, { pids: 40 })).rejects.toMatchObject({
    message: expect.stringMatching(/can't fork/),
  });
  const filling = scene.build(`${BUILD_BASE}\nRUN head -c 60m /dev/zero > /full; sleep 60`, {
    disk_bytes: 2 ** 25,
  });
  await expect(filling).rejects.toMatchObject({
    message: expect.stringMatching(/has written \d+ bytes; its limit is 33554432/),
  });
  expect(await scene.leftOvers()).toEqual(NO_BUILD_OBJECTS);
});
