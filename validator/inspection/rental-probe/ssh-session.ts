/** SSH through a pod's leased port as a renter uses it: a login with commands, and reading the server's banner. */
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import ssh2 from 'ssh2';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';

const LOGIN_MS = 20_000;
const COMMAND_MS = 20_000;
const MAX_OUTPUT_BYTES = 65_536;
const MAX_BANNER_BYTES = 4_096;
const BANNER = /^SSH-2\.0-/m;
const USER = 'root';
/** Errors of the validator's machine, which prove nothing about the host. */
const OWN_FAULTS = ['EMFILE', 'ENFILE', 'ENOBUFS', 'EADDRNOTAVAIL', 'ENETUNREACH', 'ENETDOWN'];

export type SshPlace = { host: string; port: number };

export type SshSession = {
  /**
   * Sends `input`, if any, and resolves with the output. Rejects on a nonzero exit status, or after `timeoutMs`, by
   * default 20 s.
   */
  run(command: string, input?: string | Buffer, timeoutMs?: number): Promise<string>;
  end(): void;
};

export type SshLogin = (
  place: SshPlace,
  login: { privateKeyPem: string; hostKeyFingerprint: string | null; signal: AbortSignal },
) => Promise<SshSession>;

/** Returns true for an error of the validator's machine. */
export function isOwnFault(error: unknown): boolean {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return typeof code === 'string' && OWN_FAULTS.includes(code);
}

/** Opens a connection to `place`, which may still be connecting. Rejects when the signal aborts. */
export type OpenSocket = (place: SshPlace, signal: AbortSignal) => Promise<Socket>;

const openDirectly: OpenSocket = async (place) => connect({ ...place, noDelay: true });

/** Accepts only the host key of the fingerprint, or any for null. Rejects without a login within 20 s. */
export const createSshLogin =
  (clock: Clock, open: OpenSocket = openDirectly): SshLogin =>
  async (place, { privateKeyPem, hostKeyFingerprint, signal }) => {
    const limit = clock.deadline(LOGIN_MS, signal);
    const sock = await open(place, limit);
    const client = new ssh2.Client();
    const close = () => {
      client.end();
      sock.destroy();
    };
    // Errors after the login reject the running command.
    client.on('error', () => undefined);
    const ready = new Promise<void>((resolve, reject) => {
      sock.once('error', reject);
      client.once('error', reject);
      client.once('ready', resolve);
      client.once('close', () => reject(new Error('the connection was closed')));
    });
    client.connect({
      sock,
      username: USER,
      privateKey: privateKeyPem,
      readyTimeout: 0,
      hostVerifier: (key: Buffer) =>
        hostKeyFingerprint === null || fingerprintOf(key) === hostKeyFingerprint,
    });
    try {
      await abortable(ready, limit);
    } catch (error) {
      close();
      throw error;
    }
    return {
      run: (command, input, timeoutMs = COMMAND_MS) =>
        abortable(runCommand(client, command, input), clock.deadline(timeoutMs, signal)),
      end: close,
    };
  };

function runCommand(
  client: ssh2.Client,
  command: string,
  input?: string | Buffer,
): Promise<string> {
  return new Promise<string>((resolve, reject) => {
    const onClose = () => reject(new Error('the connection was closed'));
    client.once('close', onClose);
    client.exec(command, (error, channel) => {
      if (error !== undefined) return reject(error);
      let output = '';
      let exitCode: number | null = null;
      channel.on('data', (bytes: Buffer) => {
        if (output.length < MAX_OUTPUT_BYTES) output += bytes.toString('utf8');
      });
      channel.stderr.resume();
      if (input !== undefined) channel.end(input);
      channel.on('exit', (code) => {
        exitCode = code;
      });
      channel.on('close', () => {
        client.off('close', onClose);
        if (exitCode === 0) resolve(output);
        else reject(new Error(`the command ended with exit status ${exitCode}`));
      });
    });
  });
}

/** Resolves with null if an SSH server listens at `place`, otherwise with the problem. */
export type ReadBanner = (place: SshPlace, signal: AbortSignal) => Promise<string | null>;

/** Sends nothing. Rejects only for errors of the validator. */
export const readBanner: ReadBanner = async (place, signal) => {
  const socket = connect({ ...place, signal });
  try {
    return (await hasBanner(socket)) ? null : 'not an SSH server';
  } catch (error) {
    if (isOwnFault(error)) throw error;
    return signal.aborted ? 'no answer in time' : messageOf(error);
  } finally {
    socket.destroy();
  }
};

async function hasBanner(socket: Socket): Promise<boolean> {
  let text = '';
  for await (const bytes of socket) {
    text += String(bytes);
    if (BANNER.test(text)) return true;
    if (text.length > MAX_BANNER_BYTES) return false;
  }
  return false;
}

function fingerprintOf(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;
}

function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
