/** Rejects images whose registry is the node itself, unless only programs of this host reach the central API. */
import { lookup } from 'node:dns/promises';
import { BUILTIN_HOST, registryAddressOf } from '#shared/api/agent/images.ts';
import { isLocalName } from '#shared/http/addresses.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { isLoopback } from '#shared/tls/tls-mode.ts';

/** Throws 400 `template_invalid` for a loopback registry. Undefined: the request does not change the image. */
export type CheckRegistry = (image: string | undefined) => Promise<void>;

export type RegistryCheckDeps = {
  clock: Clock;
  /** True if loopback registries are allowed. */
  allowsLoopback: boolean;
  /** Returns the addresses of a name; default: the resolver of this host. */
  resolve?: (name: string) => Promise<readonly string[]>;
};

const RESOLVE_TIMEOUT_MS = 2_000;
/** Linux connects to the unspecified addresses as to loopback addresses. */
const UNSPECIFIED = /^(?:0\.\d+\.\d+\.\d+|::)$/;

/**
 * Creates the check. It resolves names, outside any transaction. A name that does not resolve within two seconds
 * passes: the node resolves it with its own resolver, and its agent rejects private addresses again.
 */
export function createRegistryCheck(deps: RegistryCheckDeps): CheckRegistry {
  const { clock, allowsLoopback, resolve = resolveHere } = deps;

  async function addressesOf(host: string): Promise<readonly string[]> {
    const resolved = new AbortController();
    const nothing = () => undefined;
    const late = clock.sleep(RESOLVE_TIMEOUT_MS, resolved.signal).then(nothing, nothing);
    const addresses = await Promise.race([resolve(host).catch(nothing), late]);
    resolved.abort();
    return addresses ?? [];
  }

  return async (image) => {
    if (allowsLoopback || image === undefined || image.startsWith(BUILTIN_HOST)) return;
    const registry = registryAddressOf(image);
    // The URL parser converts notations such as 127.1 and 0x7f000001.
    const host = URL.parse(`http://${registry}`)?.hostname ?? registry;
    const isLocal = isLocalHost(host) || (await addressesOf(host)).some(isLocalHost);
    if (!isLocal) return;
    throw new ApiError(
      'template_invalid',
      `docker_image: the registry ${registry} is the node itself`,
      {
        hint: 'Name a registry that nodes reach over the network.',
      },
    );
  };
}

function isLocalHost(host: string): boolean {
  return isLoopback(host) || isLocalName(host) || UNSPECIFIED.test(host);
}

async function resolveHere(name: string): Promise<string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address);
}
