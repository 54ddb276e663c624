/** The agent's own ed25519 key: it signs answers, and is the key of its self-made certificate (validator reference 3). */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { join } from 'node:path';
import { ConfigError } from '../runtime/config.ts';
import { readOrCreatePrivateFile, readPrivateFile } from '../runtime/files.ts';
import type { Random } from '../runtime/random.ts';
import { type Pin, pinOf } from '../tls/peer.ts';
import { sha256Hex } from './signed-request.ts';
import { signatureFromHex, toHex } from './sr25519.ts';

export type Identity = {
  /** 64 lower-case hex digits. */
  publicKey: string;
  privateKey: KeyObject;
  /** 64 bytes; ed25519 is deterministic. */
  sign(text: string): Uint8Array;
};

const KEY_FILE = 'identity.key';
const SEED_BYTES = 32;
const KEY_BYTES = 32;
/** What comes before the 32 bytes in PKCS #8 and SPKI (RFC 8410). */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** Reads the key in `home`, made on the first call; mode 0600. Throws when others may read it. */
export function openIdentity(home: string, random: Random): Identity {
  const path = join(home, KEY_FILE);
  const seed = readOrCreatePrivateFile(path, () => random.bytes(SEED_BYTES), random);
  return identityFrom(checked(seed, path));
}

/** Null where none was made yet. Throws as `openIdentity`. */
export function readIdentity(home: string): Identity | null {
  const path = join(home, KEY_FILE);
  const seed = readPrivateFile(path);
  return seed === null ? null : identityFrom(checked(seed, path));
}

function checked(seed: Uint8Array, path: string): Uint8Array {
  if (seed.length === SEED_BYTES) return seed;
  throw new ConfigError(`${path} does not hold ${SEED_BYTES} bytes: put back what it had`);
}

/** The identity of a seed of 32 bytes. */
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

/** Null for anything but 64 lower-case hex digits of an ed25519 key. */
export function publicKeyObject(publicKey: string): KeyObject | null {
  if (!/^[0-9a-f]{64}$/.test(publicKey)) return null;
  const der = Buffer.concat([PUBLIC_PREFIX, Buffer.from(publicKey, 'hex')]);
  try {
    return createPublicKey({ key: der, format: 'der', type: 'spki' });
  } catch {
    return null;
  }
}

/** Whether this identity's key signed `text`; never throws. */
export function verifyIdentity(publicKey: string, text: string, signature: Uint8Array): boolean {
  const key = publicKeyObject(publicKey);
  return key !== null && verify(null, Buffer.from(text), key, signature);
}

/** The pin of the certificate that such an identity makes itself; null as for `publicKeyObject`. */
export function selfSignedPin(publicKey: string): Pin | null {
  const key = publicKeyObject(publicKey);
  return key === null ? null : pinOf(key);
}

export const RESPONSE_SIGNATURE_HEADER = 'x-podwright-response-signature';

export type ResponseParts = {
  status: number;
  /** As sent; empty when there is none. */
  body: Uint8Array | string;
  /** The request's: an answer fits no other. */
  nonce: string;
  executorId: string;
};

export function signResponse(identity: Identity, parts: ResponseParts): string {
  return toHex(identity.sign(answerText(parts)));
}

/** `signature` as the header had it; false for anything but a valid one. */
export function isResponseSigned(
  publicKey: string,
  parts: ResponseParts,
  signature: string | null,
): boolean {
  const bytes = signatureFromHex(signature ?? '');
  return bytes !== null && verifyIdentity(publicKey, answerText(parts), bytes);
}

function answerText({ status, body, nonce, executorId }: ResponseParts): string {
  return ['podwright-res-v1', String(status), sha256Hex(body), nonce, executorId].join('\n');
}
