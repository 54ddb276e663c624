/** What a tag names in a registry just now: the digest of its manifest, and of each platform's (OCI distribution, v2). */
import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import { boundedText } from '#shared/http/bounded-text.ts';
import { sha256Hex } from '#shared/signing/canonical-request.ts';
import { isLoopback } from '#shared/tls/loopback.ts';
import { PLAIN_TRANSPORT } from '#shared/tls/transport.ts';
import { Digest } from '#shared/updates/update-manifest.ts';

export type TagContent = { digest: string; platforms: Record<string, string> };
/** Rejects when the registry does not say within five seconds. */
export type ReadTag = (image: string, tag: string) => Promise<TagContent>;

/** Of everything that one reading asks. */
const TIMEOUT_MS = 5_000;
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
const MAX_TOKEN_BYTES = 64 * 1024;
const ACCEPTED = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

/** An index has manifests, an image has none. */
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

/** Registries of this machine are spoken to plainly, all others over TLS. Logins are not used: the image is public. */
export function createReadTag(clock: Clock): ReadTag {
  return async (image, tag) => {
    const signal = clock.deadline(TIMEOUT_MS);
    const { origin, name } = placeOf(image);
    let authorization: Record<string, string> = {};

    async function ask(method: 'GET' | 'HEAD', reference: string): Promise<Response> {
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
      authorization = await tokenFor(first.headers.get('www-authenticate') ?? '', name, signal);
      return send();
    }

    const head = await ask('HEAD', tag);
    if (!head.ok) throw new Error(`the registry answered with status ${head.status}`);
    const digest = Digest.parse(head.headers.get('docker-content-digest'));
    const answer = await ask('GET', digest);
    if (!answer.ok) throw new Error(`the registry answered with status ${answer.status}`);
    const text = await boundedText(answer, MAX_MANIFEST_BYTES);
    if (`sha256:${sha256Hex(text)}` !== digest)
      throw new Error('the manifest is of another digest');
    return { digest, platforms: platformsIn(text) };
  };
}

/** Without attestations, which say that they are of an unknown platform. */
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

function placeOf(image: string): { origin: string; name: string } {
  const slash = image.indexOf('/');
  const [host, name] = [image.slice(0, slash), image.slice(slash + 1)];
  // What everybody calls Docker Hub is not where its registry is.
  const address = host === 'docker.io' ? 'registry-1.docker.io' : host;
  return { origin: `${schemeOf(address)}//${address}`, name };
}

const schemeOf = (host: string) => (isLoopback(host.replace(/:\d+$/, '')) ? 'http:' : 'https:');

/** A bearer token for reading, as the registry's challenge says where to get it. */
async function tokenFor(
  challenge: string,
  name: string,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const field = (key: string) => new RegExp(`\\b${key}="([^"]{1,500})"`).exec(challenge)?.[1];
  const realm = field('realm');
  if (!/^bearer /i.test(challenge) || realm === undefined) {
    throw new Error('the registry wants a login');
  }
  const url = new URL(realm);
  if (url.protocol !== schemeOf(url.hostname))
    throw new Error('its tokens come from a plain address');
  const service = field('service');
  if (service !== undefined) url.searchParams.set('service', service);
  url.searchParams.set('scope', `repository:${name}:pull`);
  const answer = await PLAIN_TRANSPORT.fetch(url, { method: 'GET', headers: {}, signal });
  if (!answer.ok) throw new Error(`no token: status ${answer.status}`);
  const parsed = Token.safeParse(JSON.parse(await boundedText(answer, MAX_TOKEN_BYTES)));
  if (!parsed.success) throw new Error('no token in the answer');
  return { authorization: `Bearer ${parsed.data.token}` };
}
