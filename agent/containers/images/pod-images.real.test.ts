import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodPutInput } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { type PodsProcess, startPodsProcess } from '../../../test/fakes/agents/pods-process.ts';
import { mustRun } from '../../../test/fakes/agents/real-host.ts';
import { eventually } from '../../../test/fakes/eventually.ts';

const NEVER = new AbortController().signal;
const BASE = 'FROM podwright.local/base:1';

let scene: PodsProcess;
beforeAll(async () => {
  scene = await startPodsProcess();
});
afterAll(() => scene.close());

/** Returns all frames of a log without following it. */
async function framesOf(id: string, query: { tail?: number; since?: string } = {}) {
  const options = { tail: 1_000, follow: false, ...query };
  const frames = await Array.fromAsync(await scene.agent().client.podLogs(id, options, NEVER));
  return frames.flatMap((frame) => ('log' in frame ? [frame] : []));
}

it('runs a pod from a Dockerfile; the build’s output comes first in its log', async () => {
  const dockerfile = `${BASE}\nRUN sleep 1; echo building-it\nCMD ["sh", "-c", "echo running-it; sleep 1000"]`;
  const id = await scene.put({ image: { dockerfile } });
  const seen = await scene.settled(id, ['building', 'running']);
  expect(seen.phase).toBe('building');
  const view = await scene.settled(id);
  expect(view).toMatchObject({
    phase: 'running',
    image: { reference: 'dockerfile', digest: null },
  });
  const frames = await eventually('the output', async () => {
    const found = await framesOf(id);
    return found.at(-1)?.log === 'running-it\n' && found;
  });
  const built = frames.findIndex(({ log }) => log === 'building-it\n');
  expect(built).toBeGreaterThan(0);
  expect(built).toBeLessThan(frames.length - 1);
  // A reader resumes at its position, in the build's and in the container's output.
  const rest = await framesOf(id, { since: frames[built]?.id ?? '' });
  expect(rest.map(({ log }) => log)).toEqual(frames.slice(built + 1).map(({ log }) => log));
  expect(await framesOf(id, { since: frames.at(-1)?.id ?? '' })).toEqual([]);
  expect((await framesOf(id, { tail: 2 })).map(({ log }) => log)).toEqual(
    frames.slice(-2).map(({ log }) => log),
  );

  const again = await scene.put({ image: { dockerfile } });
  const started = await scene.settled(again);
  expect(started.phase).toBe('running');
  const [one, two] = await Promise.all(
    [view, started].map(({ container_id: container }) =>
      mustRun('docker', 'inspect', '-f', '{{.Image}}', container ?? ''),
    ),
  );
  expect(two).toBe(one);
});

it('fails the pod permanently when a build step fails, and shows the step’s output', async () => {
  const id = await scene.put({ image: { dockerfile: `${BASE}\nRUN echo oh-no; exit 7` } });
  const view = await scene.settled(id);
  expect(view).toMatchObject({
    phase: 'failed',
    reason: 'BuildFailed',
    message: expect.stringMatching(/non-zero code: 7\n[\s\S]*oh-no/),
  });
  expect((await framesOf(id)).map(({ log }) => log)).toContain('oh-no\n');
});

it('rejects local registries, and a login that no image uses', async () => {
  const refused = (spec: Partial<PodPutInput>) =>
    expect(scene.put(spec)).rejects.toMatchObject({ code: 'spec_refused' });
  await refused({ image: { dockerfile: `${BASE}\nADD http://169.254.169.254/ /x` } });
  await refused({ image: { dockerfile: 'RUN true' } });
  const auth = { host: 'r.example', username: 'ann', password: 'x' };
  await refused({ registry_auth: auth });
  await refused({ registry_auth: auth, image: { dockerfile: BASE } });
});

it('pulls with the pod’s login, and never shows the login', async () => {
  const name = `podwright-test/${systemRandom.uuid()}`;
  const password = `S3CRET-${systemRandom.uuid()}`;
  const digest = scene.registry.publish(name, '1', 'private', {
    layers: [systemRandom.bytes(2_000)],
  });
  scene.registry.requireLogin({ username: 'ann', password });
  const image = { reference: `${scene.registry.host}/${name}:1` };
  const registry_auth = { host: scene.registry.host, username: 'ann', password };
  const without = await scene.put({ image });
  expect(await scene.settled(without)).toMatchObject({ phase: 'failed', reason: 'ImageAuth' });
  const id = await scene.put({ image, registry_auth });
  // The image contains no program, because the test needs only the pull.
  const view = await eventually('the pull', async () => {
    const now = await scene.agent().client.getPod(id);
    return now.image.digest === digest && now;
  });
  expect(JSON.stringify([view, await scene.agent().client.listPods()])).not.toContain(password);
  const { last_pull: pull } = await scene.agent().client.getPod(id);
  expect(pull).toMatchObject({ bytes: pull?.image_bytes, is_whole: true });
  expect(pull?.image_bytes).toBeGreaterThan(2_000);
  const response = await scene.agent().send({ method: 'GET', path: `/v1/pods/${id}` });
  expect(await response.text()).not.toContain('registry_auth');
  for (const file of readdirSync(scene.agent().home, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const content = readFileSync(join(file.parentPath, file.name));
    expect([file.name, content.includes(password)]).toEqual([file.name, false]);
  }
  const inspected = await mustRun(
    'docker',
    'image',
    'inspect',
    `${scene.registry.host}/${name}@${digest}`,
  );
  expect(inspected).not.toContain(password);
  await scene.remove(id);
  await scene.remove(without);
  execFileSync('docker', ['rmi', `${scene.registry.host}/${name}@${digest}`]);
  scene.registry.requireLogin(null);
});
