/** The agent's ed25519 identity key. It signs responses and is the key of the agent's self-signed certificate. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { join } from 'node:path';
import { ConfigError } from '../runtime/config.ts';
import { isBlank, readOrCreatePrivateFile, readPrivateFile } from '../runtime/files.ts';
import type { Random } from '../runtime/random.ts';
import { type Pin, pinOf } from '../tls/peer.ts';
import { sha256Hex } from './signed-request.ts';
import { signatureFromHex, toHex } from './sr25519.ts';

export type Identity = {
  /** 64 lower-case hex digits. */
  publicKey: string;
  privateKey: KeyObject;
  /** Returns 64 bytes; ed25519 is deterministic. */
  sign(text: string): Uint8Array;
};

const KEY_FILE = 'identity.key';
const SEED_BYTES = 32;
const KEY_BYTES = 32;
/** DER prefixes of a 32-byte key in PKCS #8 and SPKI (RFC 8410). */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** Reads the key in `home`, or creates it, mode 0600. Throws ConfigError if other users may read it. */
export function openIdentity(home: string, random: Random): Identity {
  const path = join(home, KEY_FILE);
  const seed = readOrCreatePrivateFile(path, () => random.bytes(SEED_BYTES), random);
  return identityFrom(requireSeed(seed, path));
}

/** Like `openIdentity`, but returns null if there is no key. */
export function readIdentity(home: string): Identity | null {
  const path = join(home, KEY_FILE);
  const seed = readPrivateFile(path);
  return seed === null ? null : identityFrom(requireSeed(seed, path));
}

function requireSeed(seed: Uint8Array, path: string): Uint8Array {
  if (seed.length === SEED_BYTES && !isBlank(seed)) return seed;
  throw new ConfigError(
    `${path} must contain ${SEED_BYTES} random bytes: restore it from a backup`,
  );
}

/** Derives the identity from a 32-byte seed. */
export function identityFrom(seed: Uint8Array): Identity {
  const der = Buffer.concat([PRIVATE_PREFIX, seed]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const spki = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  return {
    publicKey: spki.subarray(-KEY_BYTES).toString('hex'),
    privateKey,
    sign: (text) => sign(null, Buffer.from(text), privateKey),
  };
}

/** Parses an ed25519 public key of 64 lower-case hex digits. Null if it is invalid. */
export function publicKeyObject(publicKey: string): KeyObject | null {
  if (!/^[0-9a-f]{64}$/.test(publicKey)) return null;
  const der = Buffer.concat([PUBLIC_PREFIX, Buffer.from(publicKey, 'hex')]);
  try {
    return createPublicKey({ key: der, format: 'der', type: 'spki' });
  } catch {
    return null;
  }
}

/** Returns true if this public key signed `text`; never throws. */
export function verifyIdentity(publicKey: string, text: string, signature: Uint8Array): boolean {
  const key = publicKeyObject(publicKey);
  return key !== null && verify(null, Buffer.from(text), key, signature);
}

/** Returns the pin of this key's self-signed certificate. Null if the key is invalid. */
export function selfSignedPin(publicKey: string): Pin | null {
  const key = publicKeyObject(publicKey);
  return key === null ? null : pinOf(key);
}

export const RESPONSE_SIGNATURE_HEADER = 'x-podwright-response-signature';

export type ResponseParts = {
  status: number;
  /** Body as sent; empty if there is none. */
  body: Uint8Array | string;
  /** The request's nonce, which ties the response to it. */
  nonce: string;
  executorId: string;
};

export function signResponse(identity: Identity, parts: ResponseParts): string {
  return toHex(identity.sign(responseText(parts)));
}

/** Returns true if the header's `signature` is valid for the response. */
export function isResponseSigned(
  publicKey: string,
  parts: ResponseParts,
  signature: string | null,
): boolean {
  const bytes = signatureFromHex(signature ?? '');
  return bytes !== null && verifyIdentity(publicKey, responseText(parts), bytes);
}

/** Lines separated by LF: see README.md, "Signed responses". */
function responseText({ status, body, nonce, executorId }: ResponseParts): string {
  return ['podwright-res-v1', String(status), sha256Hex(body), nonce, executorId].join('\n');
}
