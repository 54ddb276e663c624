/**
 * Logs in to a pod with the OpenSSH client, as renters do, because a host sees which client connects: one connection for
 * each command. An SSH library differs in its version line, its algorithms and its channels.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import {
  type CommandOptions,
  type CommandResult,
  type RunCommand,
  runCommand,
} from '#shared/runtime/run-command.ts';
import { type SshKeyPair, sshFingerprint } from '#shared/signing/openssh-key.ts';
import type { OpenSocket, SshPlace } from '../inspection/rental-probe/ssh-session.ts';
import { ProxyFailed } from './socks.ts';

/** The host did not accept the login, or has another host key. */
export class LoginFailed extends Error {}
/** The login could not be tried, which proves nothing about the host. */
export class LoginNotTried extends Error {}

export type RenterSession = {
  /** Logs in and resolves with the output. Rejects with LoginFailed or LoginNotTried, or if the command fails. */
  run(command: string, input: string, timeoutMs: number): Promise<string>;
  /** Logs in and sends data to a command that reads all of it. Resolves with kilobits per second. */
  send(command: string, data: string): Promise<number>;
  /** Removes the key from the disk. */
  end(): void;
};

export type RenterLogin = (
  place: SshPlace,
  login: {
    key: SshKeyPair;
    /** Null accepts any host key. */
    hostKeyFingerprint: string | null;
    /** Locale of the renter, which OpenSSH sends; null for none. */
    locale: string | null;
    signal: AbortSignal;
  },
) => RenterSession;

/** Folders with `ssh`. */
const PATH = '/usr/local/bin:/usr/bin:/bin';
const LOGIN_S = 20;
const SEND_MS = 60_000;
const VERSION_MS = 5_000;
const MAX_OUTPUT_BYTES = 1_048_576;
const MAX_PRINTED_CHARS = 65_536;
/** OpenSSH prints these lines at the log level VERBOSE. */
const AUTHENTICATED = /^Authenticated to /m;
const SPEED = /^Bytes per second: sent ([\d.]+)/gm;
const KBIT_BYTES = 125;
/** Errors of the validator's machine. */
const OWN_FAULT =
  /^ssh: connect to host \S+ port \d+: (?:Network is (?:unreachable|down)|Cannot assign requested address|No buffer space available|Too many open files)$/;

/** Version of the client that logs in. Rejects if there is none. */
export async function readSshVersion(run: RunCommand): Promise<string> {
  const options = { timeoutMs: VERSION_MS, maxOutputBytes: MAX_OUTPUT_BYTES, env: { PATH } };
  const { stderr } = await run('ssh', ['-V'], options).catch((cause: unknown) => {
    throw new Error(`there is no ssh client in ${PATH}`, { cause });
  });
  return stderr.trim();
}

export const createOpensshLogin =
  (clock: Clock, open?: OpenSocket): RenterLogin =>
  (place, { key, hostKeyFingerprint, locale, signal }) => {
    const folder = mkdtempSync(join(tmpdir(), 'ssh-'));
    const file = join(folder, 'key');
    const hostKeys = join(folder, 'known_hosts');
    writeFileSync(file, key.privateKeyPem, { mode: 0o600 });
    // OpenSSH reads the public key before it offers the private one; without this file it may not offer it first.
    writeFileSync(`${file}.pub`, `${key.publicKey}\n`);
    chmodSync(folder, 0o700);

    async function ssh(command: string, input: string, timeoutMs: number) {
      const limit = clock.deadline(timeoutMs, signal);
      const target = open === undefined ? directly(place) : await through(open, place, limit);
      try {
        // A renter's first login finds no host key, and known keys would change the order of algorithms.
        rmSync(hostKeys, { force: true });
        const words = [...optionsFor(target.place, { file, hostKeys }), command];
        const env = { PATH, ...(locale === null ? {} : { LANG: locale }) };
        const options = { timeoutMs, maxOutputBytes: MAX_OUTPUT_BYTES, env, input, signal };
        const result = await runSsh(words, options);
        signal.throwIfAborted();
        if (!AUTHENTICATED.test(result.stderr)) throw refusalIn(result);
        if (hostKeyFingerprint !== null && storedKey(hostKeys) !== hostKeyFingerprint) {
          throw new LoginFailed('another host key');
        }
        if (result.exitCode !== 0) throw new Error(`exit status ${result.exitCode}`);
        return result;
      } finally {
        target.close();
      }
    }

    return {
      run: async (command, input, timeoutMs) =>
        (await ssh(command, input, timeoutMs)).stdout.slice(0, MAX_PRINTED_CHARS),
      async send(command, data) {
        const { stderr } = await ssh(command, data, SEND_MS);
        const [, bytesPerSecond] = [...stderr.matchAll(SPEED)].at(-1) ?? [];
        return Math.floor(Number(bytesPerSecond ?? 0) / KBIT_BYTES);
      },
      end: () => rmSync(folder, { recursive: true, force: true }),
    };
  };

function optionsFor({ host, port }: SshPlace, files: { file: string; hostKeys: string }): string[] {
  const settings = {
    BatchMode: 'yes',
    ConnectTimeout: String(LOGIN_S),
    GlobalKnownHostsFile: '/dev/null',
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    LogLevel: 'VERBOSE',
    StrictHostKeyChecking: 'no',
    UserKnownHostsFile: files.hostKeys,
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  return [...options, '-i', files.file, '-p', String(port), `root@${host}`];
}

async function runSsh(words: string[], options: CommandOptions): Promise<CommandResult> {
  try {
    return await runCommand('ssh', words, options);
  } catch (error) {
    options.signal?.throwIfAborted();
    const hint = 'install the package openssh-client';
    throw new LoginNotTried(`ssh cannot be started (${messageOf(error)}): ${hint}`);
  }
}

/** The client prints its reason in the last line, after anything that the host has sent. */
function refusalIn({ stderr }: CommandResult): Error {
  const line = stderr.trim().split('\n').at(-1)?.trim() ?? '';
  return OWN_FAULT.test(line) ? new LoginNotTried(line) : new LoginFailed(line || 'no answer');
}

/** Fingerprint of the key that the client has stored in this login. */
function storedKey(file: string): string | null {
  try {
    const [, type, blob] = readFileSync(file, 'utf8').trim().split(' ');
    return sshFingerprint(`${type} ${blob}`);
  } catch {
    return null;
  }
}

type Target = { place: SshPlace; close(): void };

const directly = (place: SshPlace): Target => ({ place, close: () => undefined });

/** Opens the connection, and a port of this computer that leads to it. */
async function through(open: OpenSocket, place: SshPlace, signal: AbortSignal): Promise<Target> {
  const socket = await opened(open, place, signal);
  const server = createServer((client) => {
    client.on('error', () => undefined);
    client.pipe(socket).pipe(client);
  });
  server.maxConnections = 1;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: '127.0.0.1', port: 0 }, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    place: { host: '127.0.0.1', port },
    close() {
      socket.destroy();
      server.close();
    },
  };
}

async function opened(open: OpenSocket, place: SshPlace, signal: AbortSignal): Promise<Socket> {
  try {
    const socket = await open(place, signal);
    socket.on('error', () => undefined);
    return socket;
  } catch (error) {
    const reason = messageOf(error);
    throw error instanceof ProxyFailed ? new LoginNotTried(reason) : new LoginFailed(reason);
  }
}
