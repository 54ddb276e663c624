import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { identityFrom } from '#shared/signing/identity.ts';
import { selfSignedCertificate } from '#shared/tls/listener-certificate.ts';
import { createSecureTransport, PLAIN_TRANSPORT, type Transport } from '#shared/tls/transport.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { outsideAddress } from '../../test/fakes/outside-address.ts';
import { upgrade } from '../../test/fakes/raw-upgrade.ts';
import type { Agent } from '../app.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-clear-'));
const identity = identityFrom(new Uint8Array(32).fill(1));
const secure = createSecureTransport({ trust: 'anybody', clock: systemClock });
const outside = outsideAddress();
let plain: Agent;
let encrypted: Agent;

beforeAll(async () => {
  const file = join(folder, 'tls.crt');
  const options = { file, privateKey: identity.privateKey, name: 'x', random: systemRandom };
  plain = await listening(null);
  encrypted = await listening(selfSignedCertificate({ ...options, clock: systemClock }));
});
afterAll(async () => {
  secure.close();
  await Promise.all([plain.stop(), encrypted.stop()]);
  rmSync(folder, { recursive: true });
});

async function listening(
  certificates: ReturnType<typeof selfSignedCertificate> | null,
): Promise<Agent> {
  const engine = createFakeEngine(systemClock);
  const agent = createTestAgent({ engine, clock: systemClock, identity, certificates });
  await agent.server.listen({ host: '0.0.0.0', port: 0 });
  return agent;
}

function originOf(agent: Agent, host: string): string {
  const address = agent.server.server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return `${agent === plain ? 'http' : 'https'}://${host}:${port}`;
}

async function call(agent: Agent, host: string, { method, path, body }: Case) {
  const transport: Transport = agent === plain ? PLAIN_TRANSPORT : secure;
  const answer = await transport.fetch(new URL(originOf(agent, host) + path), {
    method,
    // Forwarding headers are ignored.
    headers: {
      'content-type': 'application/json',
      'x-forwarded-proto': 'https',
      'x-forwarded-for': '127.0.0.1',
      forwarded: 'proto=https;for=127.0.0.1',
    },
    body: JSON.stringify(body),
  });
  const { error } = Refusal.parse(await answer.json());
  return { status: answer.status, error };
}

const Refusal = z.object({
  error: z.object({ code: z.string(), message: z.string(), hint: z.string() }).optional(),
});
type Case = { method: string; path: string; body: unknown; fields: string[] };
const POD = '/v1/pods/11111111-1111-4111-8111-111111111111';
const key = `ssh-ed25519 ${'A'.repeat(68)}`;
const repository = { location: '/backups', password: 'p'.repeat(16) };
const put = (change: object, fields: string[]): Case => ({
  method: 'PUT',
  path: POD,
  fields,
  body: { ...podSpec(), ...change },
});
const post = (path: string, body: object, fields: string[]): Case => ({
  method: 'POST',
  path: POD + path,
  body,
  fields,
});

const SECRETS: [string, Case][] = [
  ['an environment', put({ environment: { TOKEN: 'x' } }, ['environment'])],
  ['a registry login', put({ registry_auth: { username: 'a', password: 'b' } }, ['registry_auth'])],
  [
    'secrets of a pod',
    put({ secret_names: ['a'], secrets: [{ name: 'a', value: 'b' }] }, ['secrets']),
  ],
  ['SSH keys of a new pod', put({ ssh_public_keys: [key] }, ['ssh_public_keys'])],
  [
    'several kinds of secrets',
    put({ environment: { A: '' }, registry_auth: { password: 'b' }, ssh_public_keys: [key] }, [
      'environment',
      'registry_auth',
      'ssh_public_keys',
    ]),
  ],
  [
    'other keys',
    { ...put({}, ['ssh_public_keys']), path: `${POD}/ssh-keys`, body: { ssh_public_keys: [key] } },
  ],
  ['a notebook token', post('/notebook', { token: 'a'.repeat(32) }, ['token'])],
  ['a repository to back up to', post('/backups', { repository }, ['repository'])],
  ['a repository to restore from', post('/restores', { repository }, ['repository'])],
  ['a repository to read back', post('/verifications', { repository }, ['repository'])],
  ['a secret in a member that no schema has', put({ more: [{ password: 'x' }] }, ['password'])],
];

it.each(SECRETS)(
  'rejects %s over plain HTTP from another host, and stores nothing',
  async (_, sent) => {
    const { status, error } = await call(plain, outside, sent);
    const message = `Not accepted over plain HTTP: ${sent.fields.join(', ')}`;
    expect([status, error?.code, error?.message]).toEqual([403, 'tls_required', message]);
    expect(error?.hint).toMatch(/HTTPS/);
    expect(plain.pods.list()).toEqual([]);
  },
);

it.each(SECRETS)('accepts %s over TLS or on loopback', async (_, sent) => {
  const secured = await call(encrypted, outside, sent);
  const local = await call(plain, '127.0.0.1', sent);
  for (const { error } of [secured, local]) expect(error?.code).not.toBe('tls_required');
});

it('accepts a pod without secrets over plain HTTP, and with secrets over TLS', async () => {
  const bare = put({ environment: {}, ssh_public_keys: [] }, []);
  const other = { ...bare, path: POD.replace('1111', '2222') };
  expect((await call(plain, outside, other)).status).toBe(200);
  const whole = put({ environment: { TOKEN: 'x' }, ssh_public_keys: [] }, []);
  expect((await call(encrypted, outside, whole)).status).toBe(200);
});

it('rejects a terminal over plain HTTP from another host', async () => {
  const path = `${POD}/exec?cols=80&rows=24`;
  expect(await upgrade(originOf(plain, outside) + path)).toMatchObject({
    status: 403,
    code: 'tls_required',
  });
  const local = await upgrade(originOf(plain, '127.0.0.1') + path);
  expect(local.code).not.toBe('tls_required');
});
