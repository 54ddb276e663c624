/** Pulls from a docker-registry (Debian's package), which accepts one login only. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RegistryAuth } from '#shared/api/agent/images.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { mustRun } from '../../test/fakes/agents/real-host.ts';
import {
  type ImageRegistry,
  REGISTRY_LOGIN,
  startImageRegistry,
} from '../../test/fakes/external/image-registry.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { createSignedImage } from './signed-image.ts';

const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
let registry: ImageRegistry;
let image: string;
let target: { sequence: number; digest: string };

beforeAll(async () => {
  registry = await startImageRegistry({ isPrivate: true });
  image = `${registry.host}/podwright/agent`;
  const digest = await registry.publish('podwright/agent', 'stable', ['CMD ["true"]']);
  await mustRun('docker', 'rmi', `${image}:stable`);
  target = { sequence: 1, digest };
});
afterAll(() => registry.close());

const fetchWith = (login: RegistryAuth | undefined) => {
  const signed = createSignedImage({ image, engine, readLogin: () => login });
  return signed.fetch(target, systemClock.deadline(20_000)).then(() => signed.isPresent(target));
};

it('pulls the digest with the configured login, and names the variable of a wrong login', async () => {
  const wrong = { ...REGISTRY_LOGIN, host: registry.host, password: 'pass-of-others' };
  for (const login of [undefined, wrong]) {
    const error = await fetchWith(login).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      kind: 'image_auth',
      message: expect.stringContaining('see AGENT_UPDATE_LOGIN_FILE'),
    });
    expect(String(error)).not.toMatch(/pass-of/);
  }
  expect(await fetchWith({ ...REGISTRY_LOGIN, host: registry.host })).toBe(true);
});
