/** Probes whether a login works by logging in; an accepted connection alone proves nothing. */
import { connect } from 'node:net';
import ssh2 from 'ssh2';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSshKeyPair, type SshKeyPair } from '#shared/signing/openssh-key.ts';
import { type AuthorizedKey, parseAuthorizedKeys } from './authorized-keys.ts';

export const PROBE_TIMEOUT_MS = 10_000;
const USER = 'podwright-probe';

export type ProbeKey = { pair: SshKeyPair; authorized: AuthorizedKey };

/** Creates a key that exists only in this process. */
export function createProbeKey(random: Random): ProbeKey {
  const pair = createSshKeyPair(random, USER);
  const [authorized] = parseAuthorizedKeys([pair.publicKey]);
  if (authorized === undefined) throw new Error('the generated probe key cannot be parsed');
  return { pair, authorized };
}

/** Resolves with null if a command ran in the pod's shell, otherwise with the problem. Never rejects. */
export function probeLogin(
  { pair }: ProbeKey,
  { host, port, clock }: { host: string; port: number; clock: Clock },
): Promise<string | null> {
  return new Promise((resolve) => {
    const client = new ssh2.Client();
    const signal = clock.deadline(PROBE_TIMEOUT_MS);
    const finish = (problem: string | null) => {
      signal.removeEventListener('abort', onLate);
      resolve(problem);
      client.end();
    };
    const onLate = () => finish('the login timed out');
    signal.addEventListener('abort', onLate, { once: true });
    client.on('error', (error) => finish(`the login failed: ${error.message}`));
    client.on('ready', () =>
      client.exec('exit 0', (error, channel) => {
        if (error !== undefined) return finish(`no session: ${error.message}`);
        channel.on('exit', (code) =>
          finish(code === 0 ? null : `the image has no working shell (exit status ${code})`),
        );
        channel.on('close', () => finish('the session ended early'));
        channel.resume();
        channel.stderr.resume();
      }),
    );
    // By default ssh2 leaves Nagle's algorithm on, and most of a login is spent waiting for acknowledgements.
    const sock = connect({ host, port, noDelay: true });
    client.connect({ sock, username: USER, privateKey: pair.privateKeyPem });
  });
}
