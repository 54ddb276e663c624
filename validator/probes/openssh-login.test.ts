/** Logins with the real OpenSSH client, against a server that records what a host sees. */
import { connect, createServer } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { sshFingerprint } from '#shared/signing/openssh-key.ts';
import {
  type SeenLogin,
  type SshRecorder,
  startSshRecorder,
} from '../../test/fakes/agents/ssh-recorder.ts';
import { createLoginKey } from './login-key.ts';
import { createOpensshLogin, LoginFailed, LoginNotTried } from './openssh-login.ts';
import { ProxyFailed } from './socks.ts';

const RUN_MS = 30_000;
const HOST = '127.0.0.1';

let recorder: SshRecorder;
let logins: SeenLogin[];
beforeEach(async () => {
  recorder = await startSshRecorder();
  logins = [];
});
afterEach(() => recorder.close());

type Options = {
  type?: 'ed25519' | 'rsa' | 'ecdsa';
  hostKeyFingerprint?: string | null;
  port?: number;
  open?: Parameters<typeof createOpensshLogin>[1];
};

async function sessionOf(options: Options = {}) {
  const { type = 'ed25519', hostKeyFingerprint = null, port = recorder.port, open } = options;
  const key = await createLoginKey(systemRandom, { type, bits: 2_048, comment: 'me@here' });
  recorder.expect(key.publicKey, (login) => logins.push(login));
  const signal = new AbortController().signal;
  const login = { key, hostKeyFingerprint, locale: 'C.UTF-8', signal };
  return createOpensshLogin(systemClock, open)({ host: HOST, port }, login);
}

it.each(['ed25519', 'rsa', 'ecdsa'] as const)(
  'shows a host what the OpenSSH client of a renter shows, with a key of type %s',
  async (type) => {
    const session = await sessionOf({ type });
    await session.run('sh', 'echo\n', RUN_MS);
    session.end();
    expect(logins).toEqual([
      expect.objectContaining({
        version: expect.stringMatching(/^OpenSSH_/),
        attempts: ['none', expect.any(String), expect.stringMatching(/ signed$/)],
        variables: { LANG: 'C.UTF-8' },
        channel: 'exec',
        hasTerminal: false,
      }),
    ]);
  },
);

it('measures how fast a pod receives data', async () => {
  const session = await sessionOf();
  expect(await session.send('wc -c', 'x'.repeat(1_000_000))).toBeGreaterThan(0);
  session.end();
});

it('accepts only the host key of the pod', async () => {
  const right = await sessionOf({ hostKeyFingerprint: sshFingerprint(recorder.hostKey) });
  expect(await right.run('sh', '', RUN_MS)).toBe('');
  const wrong = await sessionOf({ hostKeyFingerprint: 'SHA256:other' });
  await expect(wrong.run('sh', '', RUN_MS)).rejects.toThrow(new LoginFailed('another host key'));
  right.end();
  wrong.end();
});

it('reports a closed port as a failed login', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen({ host: HOST, port: 0 }, resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await new Promise((resolve) => server.close(resolve));
  const session = await sessionOf({ port });
  await expect(session.run('sh', '', RUN_MS)).rejects.toThrow(/Connection refused$/);
  await expect(session.run('sh', '', RUN_MS)).rejects.toThrow(LoginFailed);
  session.end();
});

it('connects through a proxy, whose own failure proves nothing about the host', async () => {
  const through = await sessionOf({ open: async (place) => connect(place) });
  expect(await through.run('sh', '', RUN_MS)).toBe('');
  const failing = await sessionOf({ open: () => Promise.reject(new ProxyFailed('no proxy')) });
  await expect(failing.run('sh', '', RUN_MS)).rejects.toThrow(new LoginNotTried('no proxy'));
  const closed = await sessionOf({ open: () => Promise.reject(new Error('not reached')) });
  await expect(closed.run('sh', '', RUN_MS)).rejects.toThrow(new LoginFailed('not reached'));
  for (const session of [through, failing, closed]) session.end();
});
