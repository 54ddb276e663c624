/** Reads the digest of a tag and of its platforms from a registry (OCI distribution, v2). */
import { z } from 'zod';
import type { RegistryAuth } from '#shared/api/agent/images.ts';
import { boundedText } from '#shared/http/bounded-text.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { isLoopback } from '#shared/tls/tls-mode.ts';
import { PLAIN_TRANSPORT } from '#shared/tls/transport.ts';
import { Digest } from '#shared/updates/update-manifest.ts';

export type TagContent = { digest: string; platforms: Record<string, string> };
/** Reads a tag. Rejects if the registry does not answer within five seconds. `login`: null if the image is public. */
export type ReadTag = (
  image: string,
  tag: string,
  login: RegistryAuth | null,
) => Promise<TagContent>;

/** Deadline of all requests together. */
const TIMEOUT_MS = 5_000;
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
const MAX_TOKEN_BYTES = 64 * 1024;
const ACCEPTED = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

/** An index lists manifests; the manifest of a single image lists none. */
const Index = z.object({
  manifests: z
    .array(
      z.object({
        digest: Digest,
        platform: z
          .object({ os: z.string(), architecture: z.string(), variant: z.string().optional() })
          .optional(),
      }),
    )
    .default([]),
});
const Token = z.union([
  z.object({ token: z.string().max(MAX_TOKEN_BYTES) }),
  z
    .object({ access_token: z.string().max(MAX_TOKEN_BYTES) })
    .transform(({ access_token: token }) => ({ token })),
]);

/** Uses plain HTTP for registries on this machine only, so that a login is never sent unencrypted. */
export function createReadTag(clock: Clock): ReadTag {
  return async (image, tag, login) => {
    const signal = clock.deadline(TIMEOUT_MS);
    const { origin, name } = locationOf(image);
    let authorization: HeaderFields = {};

    async function request(method: 'GET' | 'HEAD', reference: string): Promise<Response> {
      const url = new URL(`${origin}/v2/${name}/manifests/${reference}`);
      const send = () =>
        PLAIN_TRANSPORT.fetch(url, {
          method,
          headers: { accept: ACCEPTED, ...authorization },
          signal,
        });
      const first = await send();
      if (first.status !== 401 || 'authorization' in authorization) return first;
      await first.body?.cancel();
      const challenge = first.headers.get('www-authenticate') ?? '';
      authorization = /^basic\b/i.test(challenge)
        ? basicOf(login)
        : await tokenFor({ challenge, name, login, signal });
      return send();
    }

    const head = await request('HEAD', tag);
    refuseUnless(head, login);
    const digest = Digest.parse(head.headers.get('docker-content-digest'));
    const answer = await request('GET', digest);
    refuseUnless(answer, login);
    const text = await boundedText(answer, MAX_MANIFEST_BYTES);
    if (`sha256:${sha256Hex(text)}` !== digest)
      throw new Error('the manifest does not match its digest');
    return { digest, platforms: platformsIn(text) };
  };
}

/** Returns the digests by platform. Leaves out attestations, which have an unknown platform. */
function platformsIn(text: string): Record<string, string> {
  const { manifests } = Index.parse(JSON.parse(text));
  return Object.fromEntries(
    manifests.flatMap(({ digest, platform }) => {
      if (platform === undefined || platform.os === 'unknown') return [];
      const { os, architecture, variant } = platform;
      return [[[os, architecture, ...(variant === undefined ? [] : [variant])].join('/'), digest]];
    }),
  );
}

function locationOf(image: string): { origin: string; name: string } {
  const slash = image.indexOf('/');
  const [host, name] = [image.slice(0, slash), image.slice(slash + 1)];
  // Docker Hub's registry has another host name.
  const address = host === 'docker.io' ? 'registry-1.docker.io' : host;
  return { origin: `${schemeOf(address)}//${address}`, name };
}

const schemeOf = (host: string) => (isLoopback(host.replace(/:\d+$/, '')) ? 'http:' : 'https:');

type HeaderFields = Record<string, string>;

/** Throws unless the response succeeded. Registries answer 401 or 403 for images that need a login. */
function refuseUnless({ ok, status }: Response, login: RegistryAuth | null): void {
  if (ok) return;
  if (status === 401 || status === 403) throw new Error(refusalOf(login));
  throw new Error(`the registry answered with status ${status}`);
}

const refusalOf = (login: RegistryAuth | null) =>
  login === null
    ? 'the registry requires a login: set VALIDATOR_AGENT_LOGIN_FILE'
    : 'the registry rejects the login in VALIDATOR_AGENT_LOGIN_FILE: correct its user name or password';

function basicOf(login: RegistryAuth | null): HeaderFields {
  if (login === null) throw new Error(refusalOf(login));
  const text = Buffer.from(`${login.username}:${login.password}`, 'utf8').toString('base64');
  return { authorization: `Basic ${text}` };
}

/** Fetches a bearer token for pulls from the server that the challenge names. */
async function tokenFor({
  challenge,
  name,
  login,
  signal,
}: {
  challenge: string;
  name: string;
  login: RegistryAuth | null;
  signal: AbortSignal;
}): Promise<HeaderFields> {
  const field = (key: string) => new RegExp(`\\b${key}="([^"]{1,500})"`).exec(challenge)?.[1];
  const realm = field('realm');
  if (!/^bearer /i.test(challenge) || realm === undefined) throw new Error(refusalOf(login));
  const url = new URL(realm);
  if (url.protocol !== schemeOf(url.hostname))
    throw new Error('the registry’s token server does not use TLS');
  const service = field('service');
  if (service !== undefined) url.searchParams.set('service', service);
  url.searchParams.set('scope', `repository:${name}:pull`);
  const headers = login === null ? {} : basicOf(login);
  const answer = await PLAIN_TRANSPORT.fetch(url, { method: 'GET', headers, signal });
  refuseUnless(answer, login);
  const parsed = Token.safeParse(JSON.parse(await boundedText(answer, MAX_TOKEN_BYTES)));
  if (!parsed.success) throw new Error('no token in the answer');
  return { authorization: `Bearer ${parsed.data.token}` };
}
