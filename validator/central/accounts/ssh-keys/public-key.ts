/** Parses pasted SSH public keys strictly and normalises them (RFC 4253 section 6.6, RFC 5656, RFC 8709). Pure. */
import { createHash } from 'node:crypto';

export type PublicKey = {
  /** `type base64[ comment]`, separated by single blanks. */
  text: string;
  /** `SHA256:…`, as printed by ssh-keygen -l. Does not depend on the comment. */
  fingerprint: string;
};

export type ParseResult = { key: PublicKey } | { problem: string };

export const MAX_PUBLIC_KEY_CHARS = 16_384;
const MAX_COMMENT_CHARS = 255;
const MIN_RSA_BITS = 1_024;
const MAX_RSA_BITS = 16_384;

/** Checks, for each type, the parts that follow the type's name in the blob. */
const TYPES: Record<string, (parts: Uint8Array[]) => boolean> = {
  'ssh-ed25519': ([key, ...rest]) => key?.length === 32 && rest.length === 0,
  'ssh-rsa': isRsa,
  'ecdsa-sha2-nistp256': (parts) => isEcdsa(parts, 'nistp256', 65),
  'ecdsa-sha2-nistp384': (parts) => isEcdsa(parts, 'nistp384', 97),
  'ecdsa-sha2-nistp521': (parts) => isEcdsa(parts, 'nistp521', 133),
  'sk-ssh-ed25519@openssh.com': ([key, application, ...rest]) =>
    key?.length === 32 && application !== undefined && rest.length === 0,
  'sk-ecdsa-sha2-nistp256@openssh.com': (parts) =>
    parts.length === 3 && isEcdsa(parts.slice(0, 2), 'nistp256', 65),
};

/** Rejects options before the type, several lines and control characters, which could grant more than a key does. */
export function parsePublicKey(pasted: string): ParseResult {
  const text = pasted.trim();
  if (text.includes('PRIVATE KEY')) {
    return {
      problem: 'This is a private key: send the public key and keep the private key secret',
    };
  }
  if (/\p{Cc}|[\u2028\u2029]/u.test(text.replaceAll('\t', ' '))) {
    return { problem: 'A public key is one line without control characters' };
  }
  const [type = '', encoded = '', ...commentWords] = text.split(/[ \t]+/);
  const isWellFormed = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined;
  if (isWellFormed === undefined) {
    return { problem: `Not a key type in use; known are ${Object.keys(TYPES).join(', ')}` };
  }
  const blob = Buffer.from(encoded, 'base64');
  if (encoded === '' || blob.toString('base64') !== encoded) {
    return { problem: 'The key is not base64 text' };
  }
  const [name, ...parts] = readParts(blob) ?? [];
  if (name === undefined || Buffer.from(name).toString('latin1') !== type) {
    return { problem: 'The type inside the key differs from the type before it' };
  }
  if (!isWellFormed(parts)) return { problem: `The key is not a valid ${type} key` };
  const comment = commentWords.join(' ');
  if (comment.length > MAX_COMMENT_CHARS) return { problem: 'The comment is too long' };
  return {
    key: {
      text: [type, encoded, comment].filter((part) => part !== '').join(' '),
      fingerprint: fingerprintOf(blob),
    },
  };
}

function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

/** Splits a blob into its length-prefixed strings. Returns null if the last string is incomplete. */
function readParts(blob: Buffer): Uint8Array[] | null {
  const parts: Uint8Array[] = [];
  let at = 0;
  while (at < blob.length) {
    if (at + 4 > blob.length) return null;
    const length = blob.readUInt32BE(at);
    at += 4;
    if (length > blob.length - at) return null;
    parts.push(blob.subarray(at, at + length));
    at += length;
  }
  return parts;
}

function isRsa([exponent, modulus, ...rest]: Uint8Array[]): boolean {
  if (exponent === undefined || modulus === undefined || rest.length > 0) return false;
  const bits = bitLength(modulus);
  return bitLength(exponent) > 1 && bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS;
}

/** Bit length of a positive mpint; 0 if the number is negative or has needless padding. */
function bitLength(mpint: Uint8Array): number {
  const [first = 0, second = 0] = mpint;
  if (mpint.length === 0 || first >= 0x80 || (first === 0 && second < 0x80)) return 0;
  const bytes = first === 0 ? mpint.subarray(1) : mpint;
  return bytes.length * 8 - (Math.clz32(bytes[0] ?? 0) - 24);
}

/** Accepts only uncompressed points, which OpenSSH writes. */
function isEcdsa([curve, point, ...rest]: Uint8Array[], name: string, pointBytes: number): boolean {
  if (curve === undefined || point === undefined || rest.length > 0) return false;
  return (
    Buffer.from(curve).toString('latin1') === name && point.length === pointBytes && point[0] === 4
  );
}
