/** Hotkeys: sr25519 public keys as ss58 addresses with prefix 42. */
import { createHash } from 'node:crypto';
import { base58 } from '@scure/base';
import { z } from 'zod';

/** A validated ss58 address: prefix 42, valid checksum, 32-byte key. */
export type Hotkey = string & { readonly brand: 'Hotkey' };

const PREFIX = 42;
const PUBLIC_KEY_BYTES = 32;
const CHECKSUM_BYTES = 2;
const CHECKSUM_CONTEXT = new TextEncoder().encode('SS58PRE');

/** Encodes a 32-byte public key as ss58. */
export function hotkeyOf(publicKey: Uint8Array): Hotkey {
  if (publicKey.length !== PUBLIC_KEY_BYTES) throw new RangeError('a public key has 32 bytes');
  const body = Uint8Array.of(PREFIX, ...publicKey);
  return base58.encode(Uint8Array.of(...body, ...checksumOf(body))) as Hotkey;
}

/**
 * Public keys of addresses that were decoded: decoding takes tens of microseconds, and a list of nodes has thousands of
 * addresses.
 */
const decoded = new Map<string, Uint8Array>();
/** Maximum number of addresses in memory: some megabytes. */
const MAX_DECODED = 20_000;

/** Decodes the public key of an ss58 address. Null for hex, other prefixes, other lengths and bad checksums. */
export function publicKeyOf(text: string): Uint8Array | null {
  const known = decoded.get(text);
  if (known !== undefined) return known.slice();
  const publicKey = decode(text);
  if (publicKey === null) return null;
  if (decoded.size >= MAX_DECODED) decoded.clear();
  decoded.set(text, publicKey);
  return publicKey.slice();
}

function decode(text: string): Uint8Array | null {
  if (!/^[1-9A-HJ-NP-Za-km-z]{47,48}$/.test(text)) return null;
  let bytes: Uint8Array;
  try {
    bytes = base58.decode(text);
  } catch {
    return null;
  }
  if (bytes.length !== 1 + PUBLIC_KEY_BYTES + CHECKSUM_BYTES || bytes[0] !== PREFIX) return null;
  const publicKey = bytes.slice(1, 1 + PUBLIC_KEY_BYTES);
  return hotkeyOf(publicKey) === text ? publicKey : null;
}

/** Accepts exactly the texts that `publicKeyOf` decodes, as text: schemas of answers must not transform values. */
export const HotkeyText = z
  .string()
  .refine((text) => publicKeyOf(text) !== null, 'Not an ss58 address with prefix 42');

/** Accepts exactly the texts that `publicKeyOf` decodes. */
export const Hotkey = HotkeyText.transform((text) => text as Hotkey);

function checksumOf(body: Uint8Array): Uint8Array {
  const hash = createHash('blake2b512').update(CHECKSUM_CONTEXT).update(body).digest();
  return new Uint8Array(hash.subarray(0, CHECKSUM_BYTES));
}
