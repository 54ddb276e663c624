/** Authorized keys of a pod, and verification of client signatures, including security keys (`sk-…`). Pure. */

import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import ssh2, { type PublicKeyAuthContext } from 'ssh2';

const RSA_HASHES = ['sha256', 'sha512'];

export type AuthorizedKey = {
  blob: Buffer;
  fingerprint: string;
  /** Verifies this key's `signature` over `blob`. `hash`: the hash that an RSA client declares. */
  verify(blob: Buffer, signature: Buffer, hash: string | undefined): boolean;
};

/** Parses public key lines; skips lines of unsupported or malformed keys. */
export function parseAuthorizedKeys(lines: readonly string[]): AuthorizedKey[] {
  return lines.flatMap((line) => {
    const key = parseHardwareKey(line) ?? parseSoftwareKey(line);
    return key === null ? [] : [{ ...key, fingerprint: fingerprintOf(key.blob) }];
  });
}

/** Returns the key that the client offers if it is one of `keys`. */
export function offeredKey(
  context: PublicKeyAuthContext,
  keys: readonly AuthorizedKey[],
): AuthorizedKey | null {
  return keys.find(({ blob }) => blob.equals(context.key.data)) ?? null;
}

/** Returns true if the client has signed this session with the key. */
export function hasSigned(context: PublicKeyAuthContext, key: AuthorizedKey): boolean {
  const { blob, signature, hashAlgo } = context;
  if (blob === undefined || signature === undefined) return false;
  return key.verify(blob, signature, hashAlgo);
}

function parseSoftwareKey(line: string): Omit<AuthorizedKey, 'fingerprint'> | null {
  const parsed = ssh2.utils.parseKey(line);
  // Rejects a line that yields several keys or a private key.
  if (parsed instanceof Error || Array.isArray(parsed) || parsed.isPrivateKey()) return null;
  if (parsed.type === 'ssh-dss') return null;
  return {
    blob: parsed.getPublicSSH(),
    verify(blob, signature, hash) {
      // RSA keys may also sign with SHA-1, which can be forged.
      if (parsed.type === 'ssh-rsa' && !RSA_HASHES.includes(hash ?? '')) return false;
      return parsed.verify(blob, signature, hash) === true;
    },
  };
}

function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

/** Verifies a signature in the form that ssh2 passes on. */
export type VerifyHardware = (blob: Uint8Array, signature: Uint8Array) => boolean;

const ED25519 = 'sk-ssh-ed25519@openssh.com';
const ECDSA = 'sk-ecdsa-sha2-nistp256@openssh.com';
const ED25519_BYTES = 32;
const ED25519_SIGNATURE_BYTES = 64;
const COORDINATE_BYTES = 32;
/** Size of the flags and the counter that follow every signature. */
const TRAILER_BYTES = 5;
/**
 * Flag that is set if the user touched the device. If it were not required, any program with access to the device could
 * log in.
 */
const USER_PRESENT = 0x01;

/**
 * Parses a security key (OpenSSH PROTOCOL.u2f), which signs an assertion over the session instead of the session
 * itself. Returns null for other keys.
 */
export function parseHardwareKey(line: string): { blob: Buffer; verify: VerifyHardware } | null {
  const [type = '', encoded = ''] = line.trim().split(/\s+/);
  const blob = Buffer.from(encoded, 'base64');
  const [name, ...parts] = readStrings(blob) ?? [];
  if (name?.toString('latin1') !== type) return null;
  const application = parts.at(-1);
  const key = keyOf(type, parts);
  if (key === null || application === undefined) return null;
  const appHash = sha256(application);
  return {
    blob,
    verify: (message, signature) => {
      const signed = Buffer.from(signature);
      const trailer = signed.subarray(-TRAILER_BYTES);
      const raw = rawSignature(type, signed.subarray(0, -TRAILER_BYTES));
      if (raw === null || trailer.length !== TRAILER_BYTES) return false;
      if (((trailer[0] ?? 0) & USER_PRESENT) === 0) return false;
      const assertion = Buffer.concat([appHash, trailer, sha256(message)]);
      return type === ED25519
        ? verify(null, assertion, key, raw)
        : verify('sha256', assertion, { key, dsaEncoding: 'ieee-p1363' }, raw);
    },
  };
}

function keyOf(type: string, parts: readonly Buffer[]): KeyObject | null {
  try {
    if (type === ED25519 && parts.length === 2) {
      const [x] = parts;
      if (x?.length !== ED25519_BYTES) return null;
      const jwk = { kty: 'OKP', crv: 'Ed25519', x: x.toString('base64url') };
      return createPublicKey({ key: jwk, format: 'jwk' });
    }
    const [curve, point] = parts;
    if (type !== ECDSA || parts.length !== 3 || curve?.toString('latin1') !== 'nistp256')
      return null;
    if (point?.length !== 1 + 2 * COORDINATE_BYTES || point[0] !== 4) return null;
    const x = point.subarray(1, 1 + COORDINATE_BYTES).toString('base64url');
    const y = point.subarray(1 + COORDINATE_BYTES).toString('base64url');
    return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' });
  } catch {
    // The point is not on the curve.
    return null;
  }
}

/** Converts a signature to the form of Node's `verify`; null if malformed. */
function rawSignature(type: string, signature: Buffer): Buffer | null {
  if (type === ED25519) return signature.length === ED25519_SIGNATURE_BYTES ? signature : null;
  const [r, s, ...rest] = readStrings(signature) ?? [];
  if (r === undefined || s === undefined || rest.length > 0) return null;
  const numbers = [r, s].map(fixedWidth);
  return numbers.includes(null) ? null : Buffer.concat(numbers as Buffer[]);
}

/** Pads an mpint to the size of a coordinate; null if it is longer. */
function fixedWidth(mpint: Buffer): Buffer | null {
  const bytes = mpint[0] === 0 ? mpint.subarray(1) : mpint;
  if (bytes.length > COORDINATE_BYTES) return null;
  return Buffer.concat([Buffer.alloc(COORDINATE_BYTES - bytes.length), bytes]);
}

/** Splits `bytes` into length-prefixed strings; null if malformed. */
function readStrings(bytes: Buffer): Buffer[] | null {
  const strings: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (at + 4 > bytes.length) return null;
    const end = at + 4 + bytes.readUInt32BE(at);
    if (end > bytes.length) return null;
    strings.push(bytes.subarray(at + 4, end));
    at = end;
  }
  return strings;
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}
