/** A login at an image registry, and which registry an image comes from. Pure. */
import { z } from 'zod';

/** What Docker Hub is called, whatever an image's name says of it. */
export const DOCKER_HUB = 'docker.io';
/** Images whose names begin so are made by each agent itself and never pulled. */
export const BUILTIN_HOST = 'podwright.local/';
const HUB_NAMES = new Set([
  DOCKER_HUB,
  'index.docker.io',
  'registry-1.docker.io',
  'hub.docker.com',
]);
const NO_CONTROL = /^[^\p{Cc}]*$/u;

export const RegistryAuth = z.strictObject({
  /** `host[:port]` as in the image's name; `docker.io` for names without one. */
  host: z
    .string()
    .max(255)
    .regex(/^[a-z0-9][a-z0-9.-]*(?::\d{1,5})?$/, 'Not a registry host'),
  username: z.string().min(1).max(255).regex(NO_CONTROL, 'Contains control characters'),
  password: z.string().min(1).max(8_192).regex(NO_CONTROL, 'Contains control characters'),
});
export type RegistryAuth = z.output<typeof RegistryAuth>;

/** `host[:port]` of an image's registry, lower case; a login for it is for no other. */
export function registryAddressOf(reference: string): string {
  const [first = '', ...rest] = reference.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  const address = isHost ? first.toLowerCase() : DOCKER_HUB;
  return HUB_NAMES.has(address) ? DOCKER_HUB : address;
}
