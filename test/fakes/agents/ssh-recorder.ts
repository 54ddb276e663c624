/**
 * An SSH server in place of the gateway of many hosts. Records what a client shows until its first command: version,
 * algorithms, login attempts, variables, the kind of channel, bytes and times. Runs no command.
 */
import { createHash } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import ssh2, { type Connection } from 'ssh2';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';

/** Times in milliseconds of the monotonic clock. */
export type SeenLogin = {
  connectedMs: number;
  version: string;
  /** Hash of the client's lists of algorithms. */
  algorithms: string;
  /** Methods and key types, in order. */
  attempts: string[];
  /** Names and values that the client sends. */
  variables: Record<string, string>;
  channel: 'exec' | 'shell' | 'subsystem';
  hasTerminal: boolean;
  keysMs: number;
  loggedInMs: number;
  commandMs: number;
  /** Bytes and packets of TCP from the client until it is logged in. */
  bytes: number;
  packets: number;
};

export type SshRecorder = {
  port: number;
  /** Host key, as agents report it. */
  hostKey: string;
  /** Calls `onLogin` at the first command of a login with the key, `ssh-… AAAA… comment`. */
  expect(publicKey: string, onLogin: (login: SeenLogin) => void): void;
  close(): Promise<void>;
};

const HOST_KEY = /^ssh-ed25519 \S+/;

/** Listens on a free port of loopback. */
export async function startSshRecorder(): Promise<SshRecorder> {
  const pair = createSshKeyPair(systemRandom, '');
  const expected = new Map<string, (login: SeenLogin) => void>();
  const connections = new Map<string, ConnectionSeen>();
  // The settings of our gateway, which determine what the client sends.
  const protocol = new ssh2.Server({
    hostKeys: [pair.privateKeyPem],
    ident: 'Podwright',
    algorithms: {
      cipher: ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com', 'aes128-ctr', 'aes256-ctr'],
      hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256'],
      compress: ['none'],
    },
  });
  protocol.on('connection', (client, { ip, port, header }) => {
    client.on('error', () => undefined);
    const seen = connections.get(`${ip} ${port}`);
    if (seen === undefined) client.end();
    else record(client, { ...seen, version: header.versions.software, expected });
  });
  const listener = createServer({ noDelay: true }, (socket) => {
    const name = `${socket.remoteAddress} ${socket.remotePort}`;
    connections.set(name, observe(socket));
    socket.on('error', () => undefined);
    socket.once('close', () => connections.delete(name));
    protocol.injectSocket(socket);
  });
  await new Promise<void>((resolve) => {
    listener.listen({ host: '127.0.0.1', port: 0 }, resolve);
  });
  const address = listener.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    hostKey: HOST_KEY.exec(pair.publicKey)?.[0] ?? '',
    expect: (publicKey, onLogin) => void expected.set(blobOf(publicKey), onLogin),
    async close() {
      for (const { socket } of connections.values()) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

const blobOf = (publicKey: string): string => publicKey.split(' ')[1] ?? '';

type ConnectionSeen = {
  socket: Socket;
  connectedMs: number;
  /** Packets so far. */
  packets(): number;
  algorithms(): string;
};

type Observed = ConnectionSeen & {
  version: string;
  expected: ReadonlyMap<string, (login: SeenLogin) => void>;
};

function record(client: Connection, { socket, version, expected, ...seen }: Observed): void {
  const now = () => systemClock.monotonicMs();
  const attempts: string[] = [];
  const variables: Record<string, string> = {};
  let key = '';
  let keysMs = 0;
  let loggedInMs = 0;
  let hasTerminal = false;
  let bytes = 0;
  let packets = 0;
  client.on('handshake', () => {
    keysMs = now();
  });
  client.on('authentication', (context) => {
    const isKey = context.method === 'publickey';
    const isSigned = isKey && context.signature !== undefined;
    attempts.push(isKey ? `${context.key.algo}${isSigned ? ' signed' : ''}` : context.method);
    if (!isKey) return context.reject(['publickey']);
    key = context.key.data.toString('base64');
    context.accept();
  });
  client.on('ready', () => {
    loggedInMs = now();
    bytes = socket.bytesRead;
    packets = seen.packets();
  });
  const done = (channel: SeenLogin['channel']) =>
    expected.get(key)?.({
      connectedMs: seen.connectedMs,
      version,
      algorithms: seen.algorithms(),
      attempts,
      variables,
      channel,
      hasTerminal,
      keysMs,
      loggedInMs,
      commandMs: now(),
      bytes,
      packets,
    });
  client.on('session', (accept) => {
    const session = accept();
    session.on('env', (accepted, _reject, { key: name, val }) => {
      variables[name] = val;
      accepted?.();
    });
    session.on('pty', (accepted) => {
      hasTerminal = true;
      accepted?.();
    });
    session.on('exec', (accepted) => {
      done('exec');
      const stream = accepted();
      stream.resume();
      stream.exit(0);
      stream.end();
    });
    session.on('shell', (accepted) => {
      done('shell');
      accepted().end();
    });
    session.on('subsystem', (accepted) => {
      done('subsystem');
      accepted().end();
    });
  });
}

const PACKET_HEADER_BYTES = 5;
const COOKIE_BYTES = 17;
const LENGTH_BYTES = 4;
const LISTS = 10;
const HASH_CHARS = 12;
/** Packets that contain the lists. */
const FIRST_PACKETS = 3;

/** Hashes the lists in the client's first packet, which is not encrypted. */
function hashOfLists(bytes: Buffer): string {
  let at = bytes.indexOf('\r\n') + 2 + PACKET_HEADER_BYTES + COOKIE_BYTES;
  const hash = createHash('sha256');
  for (let list = 0; list < LISTS && at + LENGTH_BYTES <= bytes.length; list += 1) {
    const end = at + LENGTH_BYTES + bytes.readUInt32BE(at);
    hash.update(bytes.subarray(at, end));
    at = end;
  }
  return hash.digest('hex').slice(0, HASH_CHARS);
}

function observe(socket: Socket): ConnectionSeen {
  const chunks: Buffer[] = [];
  let packets = 0;
  socket.on('data', (chunk: Buffer) => {
    packets += 1;
    if (packets <= FIRST_PACKETS) chunks.push(chunk);
  });
  return {
    socket,
    connectedMs: systemClock.monotonicMs(),
    packets: () => packets,
    algorithms: () => hashOfLists(Buffer.concat(chunks)),
  };
}
