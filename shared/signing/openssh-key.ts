/** Creates ed25519 key pairs in the file format of OpenSSH (PROTOCOL.key). */
import { createHash, createPrivateKey, createPublicKey } from 'node:crypto';
import type { Random } from '../runtime/random.ts';

export type SshKeyPair = {
  /** Content of `id_ed25519`. */
  privateKeyPem: string;
  /** A line of `authorized_keys`. */
  publicKey: string;
};

/** DER prefix of a raw ed25519 seed in PKCS #8. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SEED_BYTES = 32;
const RAW_PUBLIC_KEY_BYTES = 32;
const KEY_TYPE = 'ssh-ed25519';
const CIPHER_BLOCK_BYTES = 8;
const PEM_LINE_CHARS = 70;

/** Creates a key pair without a passphrase. */
export function createSshKeyPair(random: Random, comment: string): SshKeyPair {
  const seed = Buffer.from(random.bytes(SEED_BYTES));
  const der = Buffer.concat([PKCS8_PREFIX, seed]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  const publicRaw = spki.subarray(-RAW_PUBLIC_KEY_BYTES);

  const publicBlob = Buffer.concat([field(KEY_TYPE), field(publicRaw)]);
  const check = Buffer.from(random.bytes(4));
  const secret = pad(
    Buffer.concat([
      check,
      check,
      field(KEY_TYPE),
      field(publicRaw),
      field(Buffer.concat([seed, publicRaw])),
      field(comment),
    ]),
  );
  const file = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    field('none'),
    field('none'),
    field(''),
    uint32(1),
    field(publicBlob),
    field(secret),
  ]);
  const lines = file.toString('base64').match(new RegExp(`.{1,${PEM_LINE_CHARS}}`, 'g')) ?? [];
  const name = 'OPENSSH PRIVATE KEY';
  return {
    privateKeyPem: `-----BEGIN ${name}-----\n${lines.join('\n')}\n-----END ${name}-----\n`,
    publicKey: `${KEY_TYPE} ${publicBlob.toString('base64')} ${comment}`,
  };
}

/** Returns the public key (`ssh-ed25519 AAAA…`) of a file that `createSshKeyPair` made; null for other content. */
export function publicKeyOf(privateKeyPem: string): string | null {
  const [, body = ''] =
    /^-----BEGIN OPENSSH PRIVATE KEY-----\n([^-]+)-----END OPENSSH PRIVATE KEY-----/.exec(
      privateKeyPem,
    ) ?? [];
  const file = Buffer.from(body, 'base64');
  const at = file.indexOf(field(KEY_TYPE));
  const blob = file.subarray(
    at,
    at + field(KEY_TYPE).length + field(Buffer.alloc(RAW_PUBLIC_KEY_BYTES)).length,
  );
  return at < 0 ? null : `${KEY_TYPE} ${blob.toString('base64')}`;
}

/** Returns the `SHA256:…` fingerprint of a public key line, as `ssh-keygen -l` prints it. */
export function sshFingerprint(publicKey: string): string {
  const blob = Buffer.from(publicKey.split(' ')[1] ?? '', 'base64');
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function field(content: string | Uint8Array): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([uint32(bytes.length), bytes]);
}

/** Pads with 1, 2, 3, … to the block size, as the format requires. */
function pad(bytes: Buffer): Buffer {
  const missing = (CIPHER_BLOCK_BYTES - (bytes.length % CIPHER_BLOCK_BYTES)) % CIPHER_BLOCK_BYTES;
  return Buffer.concat([bytes, Uint8Array.from({ length: missing }, (_, index) => index + 1)]);
}
