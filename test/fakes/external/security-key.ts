/**
 * A FIDO security key in software behind an SSH agent's socket. The OpenSSH client signs with it as with a real one.
 */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type Socket } from 'node:net';

export type SecurityKeyType = 'sk-ssh-ed25519@openssh.com' | 'sk-ecdsa-sha2-nistp256@openssh.com';
export type SecurityKey = ReturnType<typeof createSecurityKey>;

const APPLICATION = 'ssh:';
const REQUEST_IDENTITIES = 11;
const IDENTITIES = 12;
const SIGN_REQUEST = 13;
const SIGNATURE = 14;
const FAILURE = 5;

/** Creates a key. With `touched: false` its signatures do not have the user-presence flag. */
export function createSecurityKey(type: SecurityKeyType, touched = true) {
  const isEd25519 = type === 'sk-ssh-ed25519@openssh.com';
  const { publicKey, privateKey } = isEd25519
    ? generateKeyPairSync('ed25519')
    : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const blob = Buffer.concat([text(type), ...publicParts(publicKey, isEd25519), text(APPLICATION)]);
  let counter = 0;

  /** Returns a signature in the format of the SSH agent protocol: type, signature, flags and counter. */
  function signatureOf(data: Uint8Array): Buffer {
    counter += 1;
    const trailer = Buffer.alloc(5);
    trailer[0] = touched ? 1 : 0;
    trailer.writeUInt32BE(counter, 1);
    const assertion = Buffer.concat([sha256(Buffer.from(APPLICATION)), trailer, sha256(data)]);
    const raw = isEd25519
      ? sign(null, assertion, privateKey)
      : ecdsaParts(sign('sha256', assertion, { key: privateKey, dsaEncoding: 'ieee-p1363' }));
    return Buffer.concat([text(type), string(raw), trailer]);
  }

  return { line: `${type} ${blob.toString('base64')} token`, blob, signatureOf };
}

/** Listens on a Unix socket at `path` until it is closed. */
export async function startSecurityKeyAgent(path: string, key: SecurityKey) {
  const server = createServer((socket) => serve(socket, key));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return { close: () => server.close() };
}

function serve(socket: Socket, key: SecurityKey): void {
  let pending = Buffer.alloc(0);
  socket.on('error', () => undefined);
  socket.on('data', (data: Buffer) => {
    pending = Buffer.concat([pending, data]);
    while (pending.length >= 4 && pending.length >= 4 + pending.readUInt32BE(0)) {
      const end = 4 + pending.readUInt32BE(0);
      socket.write(string(answerTo(pending.subarray(4, end), key)));
      pending = pending.subarray(end);
    }
  });
}

function answerTo(message: Buffer, key: SecurityKey): Buffer {
  if (message[0] === REQUEST_IDENTITIES) {
    const one = Buffer.from([IDENTITIES, 0, 0, 0, 1]);
    return Buffer.concat([one, string(key.blob), text('token')]);
  }
  if (message[0] !== SIGN_REQUEST) return Buffer.from([FAILURE]);
  const dataAt = 1 + 4 + message.readUInt32BE(1);
  const data = message.subarray(dataAt + 4, dataAt + 4 + message.readUInt32BE(dataAt));
  return Buffer.concat([Buffer.from([SIGNATURE]), string(key.signatureOf(data))]);
}

function publicParts(key: KeyObject, isEd25519: boolean): Buffer[] {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  if (isEd25519) return [string(Buffer.from(x, 'base64url'))];
  const point = [Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')];
  return [text('nistp256'), string(Buffer.concat(point))];
}

function ecdsaParts(raw: Buffer): Buffer {
  return Buffer.concat([mpint(raw.subarray(0, 32)), mpint(raw.subarray(32))]);
}

function mpint(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const short = bytes.subarray(Math.max(0, first));
  return string((short[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), short]) : short);
}

function string(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function text(value: string): Buffer {
  return string(Buffer.from(value));
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}
