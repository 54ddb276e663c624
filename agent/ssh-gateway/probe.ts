/** Finds out whether a login works by logging in: a port that accepts connections proves nothing. */
import { connect } from 'node:net';
import ssh2 from 'ssh2';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSshKeyPair, type SshKeyPair } from '#shared/signing/openssh-key.ts';
import { type AuthorizedKey, parseAuthorizedKeys } from './authorized-keys.ts';

export const PROBE_TIMEOUT_MS = 10_000;
const USER = 'podwright-probe';

export type ProbeKey = { pair: SshKeyPair; authorized: AuthorizedKey };

/** A key of this process alone: it is never written anywhere. */
export function createProbeKey(random: Random): ProbeKey {
  const pair = createSshKeyPair(random, USER);
  const [authorized] = parseAuthorizedKeys([pair.publicKey]);
  if (authorized === undefined) throw new Error('our own key is none');
  return { pair, authorized };
}

/** Null when a command ran in the pod's shell, else what was in the way. Never rejects. */
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
    const onLate = () => finish('a login took too long');
    signal.addEventListener('abort', onLate, { once: true });
    client.on('error', (error) => finish(`a login failed: ${error.message}`));
    client.on('ready', () =>
      client.exec('exit 0', (error, channel) => {
        if (error !== undefined) return finish(`no session: ${error.message}`);
        channel.on('exit', (code) =>
          finish(code === 0 ? null : `the image has no shell that runs (exit status ${code})`),
        );
        channel.on('close', () => finish('the session ended early'));
        channel.resume();
        channel.stderr.resume();
      }),
    );
    // ssh2 leaves Nagle's algorithm on, which makes four fifths of a login a wait for acknowledgements.
    const sock = connect({ host, port, noDelay: true });
    client.connect({ sock, username: USER, privateKey: pair.privateKeyPem });
  });
}
