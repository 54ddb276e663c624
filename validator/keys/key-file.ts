/**
 * Keys at rest: seed files, and encrypted JSON key files (version 3) in the form of the chain's tools. Only the owner
 * may read either kind.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { Keyring } from '@polkadot/keyring';
import { decodePair } from '@polkadot/keyring/pair/decode';
import type { KeyringPair$Json } from '@polkadot/keyring/types';
import { cryptoWaitReady } from '@polkadot/util-crypto';
import { sr25519KeypairFromSeed, sr25519Sign } from '@polkadot/wasm-crypto';
import { z } from 'zod';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createPrivateFile, fileProblem, requirePrivate } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { hotkeyOf } from '#shared/signing/hotkey.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';

const MIN_PASSPHRASE_CHARS = 8;

/** The accepted kind of key file: an encrypted sr25519 pair. */
const KeyFile = z.object({
  address: z.string().max(100),
  encoded: z.string().max(10_000),
  encoding: z.object({
    content: z.tuple([z.literal('pkcs8'), z.literal('sr25519')]),
    type: z.tuple([z.literal('scrypt'), z.literal('xsalsa20-poly1305')]),
    version: z.literal('3'),
  }),
  meta: z.record(z.string(), z.unknown()).default({}),
});

/**
 * Opens an encrypted key file. Throws ConfigError if other users may read the file, the passphrase is wrong, or the
 * content is invalid.
 */
export async function readKeyFile(path: string, passphrase: string): Promise<LocalSigner> {
  const content = parsed(path, readPrivateText(path));
  await cryptoWaitReady();
  const ring = new Keyring({ type: 'sr25519', ss58Format: SS58_PREFIX });
  const pair = ring.createFromJson(content as KeyringPair$Json);
  const stated = hotkeyOf(pair.publicKey);
  try {
    pair.decodePkcs8(passphrase);
  } catch (error) {
    throw new ConfigError(`${path} cannot be opened: ${messageOf(error)}`);
  }
  const signer = signerOf(decodePair(undefined, pair.encodePkcs8(), 'none'));
  if (signer.hotkey !== stated)
    throw new ConfigError(`${path} has an address that does not belong to its key`);
  return signer;
}

/** Writes the key of `seed` to a new file of mode 0600, encrypted under `passphrase`. */
export async function writeKeyFile(
  path: string,
  seed: Uint8Array,
  passphrase: string,
  random: Random,
): Promise<LocalSigner> {
  if (passphrase.length < MIN_PASSPHRASE_CHARS) {
    throw new Error(`the passphrase has fewer than ${MIN_PASSPHRASE_CHARS} characters`);
  }
  // Checked first because encryption takes a second.
  if (existsSync(path)) throw new Error(`${path} exists already`);
  await cryptoWaitReady();
  const ring = new Keyring({ type: 'sr25519', ss58Format: SS58_PREFIX });
  const pair = ring.addFromSeed(seed);
  createPrivateFile(path, `${JSON.stringify(pair.toJson(passphrase))}\n`, random);
  return keyringSigner(seed);
}

function parsed(path: string, text: string): z.output<typeof KeyFile> {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw new ConfigError(`${path} is not a key file: it is not JSON`);
  }
  const result = KeyFile.safeParse(content);
  if (result.success) return result.data;
  const at = result.error.issues[0]?.path.join('.') || 'file';
  throw new ConfigError(
    `${path} is not an encrypted sr25519 key file of version 3: ${at} is invalid`,
  );
}

/** Location of a key: paths only, never a key or passphrase. */
export type KeyLocation =
  | { kind: 'seed'; path: string }
  | { kind: 'key-file'; path: string; passphraseFile: string };

/**
 * Opens a key. Creates a missing seed file if `random` is given. Rejects with ConfigError for an unreadable,
 * unprotected or invalid file.
 */
export async function openKey(location: KeyLocation, random: Random | null): Promise<LocalSigner> {
  if (location.kind === 'key-file') {
    const passphrase = readPrivateText(location.passphraseFile);
    if (passphrase === '') {
      throw new ConfigError(`${location.passphraseFile} is empty: write the passphrase into it`);
    }
    return readKeyFile(location.path, passphrase);
  }
  const { path } = location;
  return keyringSigner(random === null ? readSeedFile(path) : readOrCreateSeedFile(path, random));
}

export const SEED_BYTES = 32;

/**
 * Reads a 32-byte seed of 64 hex digits. Throws ConfigError if the file is missing, other users may read it, or the
 * content is invalid.
 */
export function readSeedFile(path: string): Uint8Array {
  const text = readPrivateText(path).trim();
  if (!/^(0x)?[0-9a-f]{64}$/i.test(text)) {
    throw new ConfigError(`${path} does not hold a seed: 64 hex digits are expected`);
  }
  return new Uint8Array(Buffer.from(text.replace(/^0x/i, ''), 'hex'));
}

/** Reads a seed file; creates it with mode 0600 and a random seed if it is missing. */
export function readOrCreateSeedFile(path: string, random: Random): Uint8Array {
  if (existsSync(path)) return readSeedFile(path);
  const seed = random.bytes(SEED_BYTES);
  createPrivateFile(path, `${Buffer.from(seed).toString('hex')}\n`, random);
  return seed;
}

/** Address format of the chain. */
export const SS58_PREFIX = 42;

/** Length of an expanded secret key, which precedes the public key. */
const SECRET_BYTES = 64;

/** Creates the signer of a seed with the chain's key library. */
export async function keyringSigner(seed: Uint8Array): Promise<LocalSigner> {
  await cryptoWaitReady();
  const pair = sr25519KeypairFromSeed(seed);
  return signerOf({
    secretKey: pair.subarray(0, SECRET_BYTES),
    publicKey: pair.subarray(SECRET_BYTES),
  });
}

type KeyPair = { publicKey: Uint8Array; secretKey: Uint8Array };

/** Signs in WebAssembly, because a signature in JavaScript takes nine times as long. Requires `cryptoWaitReady`. */
function signerOf({ publicKey, secretKey }: KeyPair): LocalSigner {
  return {
    hotkey: hotkeyOf(publicKey),
    sign: (message) => sr25519Sign(publicKey, secretKey, message),
  };
}

const MAX_BYTES = 65_536;

/**
 * Reads a secret without trailing line breaks. Throws ConfigError if the file cannot be read, other users may read it,
 * or it is too long.
 */
export function readPrivateText(path: string): string {
  try {
    requirePrivate(path);
    if (statSync(path).size <= MAX_BYTES) return readFileSync(path, 'utf8').replace(/[\r\n]+$/, '');
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(fileProblem(path, cause), { cause });
  }
  throw new ConfigError(`${path} is longer than ${MAX_BYTES} bytes`);
}
