import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { command } from '../../../test/fakes/agents/real-host.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import {
  BUILD_BASE,
  BUILD_LIMITS,
  type BuildScene,
  createBuildScene,
  NO_BUILD_OBJECTS,
} from '../../../test/fakes/scenes/build-scene.ts';
import { builtReference } from './build-context.ts';

const NEVER = new AbortController().signal;
let scene: BuildScene;
beforeAll(async () => {
  scene = await createBuildScene();
});
afterEach(() => scene.clear());
afterAll(() => scene.close());

it('builds an image with the renter’s steps, and shows their output', async () => {
  const text = `${BUILD_BASE}\nRUN echo "made by $(id -u)" > /made && cat /made\nCMD ["cat", "/made"]`;
  const { imageId } = await scene.build(text);
  const run = await command('docker', 'run', '--rm', '--network', 'none', imageId);
  expect(run.stdout).toBe('made by 0\n');
  expect(await scene.outputOf(text)).toMatch(
    /base:1 is sha256:[\s\S]*made by 0\n[\s\S]*Successfully built/,
  );
  expect(await scene.leftOvers()).toEqual(NO_BUILD_OBJECTS);
});

it('fails with the last lines of the failed step', async () => {
  const text = `${BUILD_BASE}\nRUN echo "no such thing" >&2; exit 3`;
  const outcome = scene.build(text);
  await expect(outcome).rejects.toMatchObject({
    name: 'BuildFailure',
    message: expect.stringMatching(/^Line 2: .*returned a non-zero code: 3\nno such thing$/),
  });
  const output = await scene.outputOf(text);
  expect(output).toMatch(/^Step 2\/2 : RUN echo "no such thing"/m);
  expect(output).toMatch(/no such thing[\s\S]*\nThe build ended: Line 2: /);
  expect(output).not.toContain('io.podwright');
  expect(await scene.leftOvers()).toEqual(NO_BUILD_OBJECTS);
});

it.each([
  [`# mine\n${BUILD_BASE}\n\nENV\nRUN true`, /^Line 4: dockerfile parse error: ENV requires/],
  [`${BUILD_BASE}\nRUN true\nSTOPSIGNAL NONE`, /^Line 3: Invalid signal: NONE$/],
  ['FROM scratch\nCMD ["x"]', /^Line 1: scratch is empty: start from/],
  [`${BUILD_BASE}\nCOPY . /app`, /^Line 2: COPY without --from/],
])('reports the line of the renter’s Dockerfile in the error for %j', async (text, message) => {
  await expect(scene.build(text)).rejects.toMatchObject({
    name: 'BuildFailure',
    message: expect.stringMatching(message),
  });
});

it('aborts a build when its pod is removed, and leaves no objects in the engine', async () => {
  const leaving = new AbortController();
  const text = `${BUILD_BASE}\nRUN echo begun; sleep 100`;
  const outcome = scene.build(text, {}, leaving.signal).then(
    () => 'built',
    () => 'given up',
  );
  await eventually('the step', async () => (await scene.outputOf(text)).includes('begun\n'));
  leaving.abort();
  expect(await outcome).toBe('given up');
  await eventually('the sweep', async () => {
    const left = await scene.leftOvers();
    return left.containers.length + left.images.length === 0;
  });
});

it('runs steps in the pod’s network, without privileges, and without the labels of a pod', async () => {
  const text = `${BUILD_BASE}\nRUN ip -4 addr; grep CapEff /proc/self/status; sleep 3`;
  const building = scene.build(text);
  const [step] = await eventually('the step', async () => {
    const found = await scene.engine.listContainers(scene.labels);
    return found.length > 0 && found[0]?.status === 'running' && found;
  });
  const format = '{{json .NetworkSettings.Networks}} {{.HostConfig.Privileged}}';
  const seen = await command('docker', 'inspect', '-f', format, step?.id ?? '');
  expect(seen.stdout).toMatch(new RegExp(`^{"${scene.network}":.* false\n$`));
  expect(step?.labels['io.podwright.pod']).toBe('');
  await building;
  // The capabilities include neither SYS_ADMIN nor NET_ADMIN.
  const effective = /CapEff:\s+([0-9a-f]+)/.exec(await scene.outputOf(text))?.[1] ?? 'f'.repeat(16);
  expect(BigInt(`0x${effective}`) & ((1n << 21n) | (1n << 12n))).toBe(0n);
});

it('pulls base images with the login, which is sent to its registry only', async () => {
  const name = `podwright-test/${systemRandom.uuid()}`;
  scene.registry.publish(name, '1', 'private', { layers: [systemRandom.bytes(1_000)] });
  scene.registry.requireLogin({ username: 'ann', password: 's3cret' });
  const reference = `${scene.registry.host}/${name}:1`;
  const wanted = {
    podId: scene.executorId,
    dockerfile: `FROM ${reference}\nCMD ["x"]`,
    limits: BUILD_LIMITS,
  };
  const auth = { host: scene.registry.host, username: 'ann', password: 's3cret' };
  const ensure = (login: typeof auth | undefined) =>
    scene.core.builds.ensure({ ...wanted, auth: login }, () => undefined, NEVER);
  await expect(ensure(undefined)).rejects.toMatchObject({ kind: 'image_auth' });
  await expect(ensure({ ...auth, host: 'r.example' })).rejects.toMatchObject({
    kind: 'image_auth',
  });
  expect((await ensure(auth)).imageId).toMatch(/^sha256:/);
  scene.registry.requireLogin(null);
});

it('rejects a base with ONBUILD instructions', async () => {
  const name = `podwright-test/${systemRandom.uuid()}`;
  const config = { OnBuild: ['ADD http://169.254.169.254/ /x'] };
  scene.registry.publish(name, '1', 'trigger', { config });
  const outcome = scene.build(`FROM ${scene.registry.host}/${name}:1`);
  await expect(outcome).rejects.toMatchObject({ message: expect.stringMatching(/ONBUILD/) });
});

it('finds the image of an earlier agent process by name, and the log in its file', async () => {
  const text = `${BUILD_BASE}\nRUN echo ${systemRandom.uuid()}`;
  const first = await scene.build(text);
  const key = scene.core.builds.keyOf(text, undefined);
  expect(await scene.engine.inspectImage(builtReference(scene.executorId, key))).toMatchObject({
    id: first.imageId,
  });
  expect(scene.core.logs.isRunning(key)).toBe(false);
  expect(await scene.outputOf(text)).toContain('Successfully built');
});
