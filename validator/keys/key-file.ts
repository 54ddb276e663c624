/** Hotkeys at rest, encrypted: the JSON key files (version 3) that the chain's own tools write (validator reference 3). */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { Keyring } from '@polkadot/keyring';
import type { KeyringPair$Json } from '@polkadot/keyring/types';
import { cryptoWaitReady } from '@polkadot/util-crypto';
import { z } from 'zod';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createPrivateFile, fileProblem, requirePrivate } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { hotkeyOf } from '#shared/signing/hotkey.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';

/** Shorter ones are guessed. */
const MIN_PASSPHRASE_CHARS = 8;

/** Of all that key files may hold: an encrypted sr25519 pair. */
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

/** The signer in `path`. Throws ConfigError when others may read the file, the passphrase is wrong, or it holds anything else. */
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
  const signer = signerOf(pair);
  if (signer.hotkey !== stated)
    throw new ConfigError(`${path} states another address than it holds`);
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
  // Asked before the work is done, too, which takes a second.
  if (existsSync(path)) throw new Error(`${path} exists already`);
  await cryptoWaitReady();
  const ring = new Keyring({ type: 'sr25519', ss58Format: SS58_PREFIX });
  const pair = ring.addFromSeed(seed);
  createPrivateFile(path, `${JSON.stringify(pair.toJson(passphrase))}\n`, random);
  return signerOf(pair);
}

function parsed(path: string, text: string): z.output<typeof KeyFile> {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw new ConfigError(`${path} is no key file: it is not JSON`);
  }
  const result = KeyFile.safeParse(content);
  if (result.success) return result.data;
  const at = result.error.issues[0]?.path.join('.') || 'file';
  throw new ConfigError(`${path} is no encrypted sr25519 key file of version 3: ${at} is wrong`);
}

// MERGED validator/keys/key-file.ts: Where a key lies, and how it is opened there.
/** Paths alone: no key and no passphrase is ever part of it. */
export type KeyLocation =
  | { kind: 'seed'; path: string }
  | { kind: 'key-file'; path: string; passphraseFile: string };

/** Rejects with ConfigError for a file that others may read or that holds something else; without `random` a missing seed is not made. */
export async function openKey(place: KeyLocation, random: Random | null): Promise<LocalSigner> {
  if (place.kind === 'key-file') {
    return readKeyFile(place.path, readPrivateText(place.passphraseFile));
  }
  const { path } = place;
  return keyringSigner(random === null ? readSeedFile(path) : readOrCreateSeedFile(path, random));
}

// MERGED validator/keys/key-file.ts: Hotkeys at rest as seeds: a file of 64 hex digits, mode 0600, made once (validator reference 3).
const SEED_BYTES = 32;

/** The 32 byte seed in `path`. Throws ConfigError when there is none, others may read the file or its content has another form. */
export function readSeedFile(path: string): Uint8Array {
  const text = readPrivateText(path).trim();
  if (!/^(0x)?[0-9a-f]{64}$/i.test(text)) {
    throw new ConfigError(`${path} does not hold a seed: 64 hex digits are expected`);
  }
  return new Uint8Array(Buffer.from(text.replace(/^0x/i, ''), 'hex'));
}

/** Reads the seed in `path`, making a random one first where there is no file. */
export function readOrCreateSeedFile(path: string, random: Random): Uint8Array {
  if (existsSync(path)) return readSeedFile(path);
  const seed = random.bytes(SEED_BYTES);
  createPrivateFile(path, `${Buffer.from(seed).toString('hex')}\n`, random);
  return seed;
}

// MERGED validator/keys/key-file.ts: Pairs of the chain's own key library as signers: in the key thread, and in commands that sign once and end.
/** Of every address that we show or take. */
export const SS58_PREFIX = 42;

/** The signer of a validator or provider, through the chain's own key library. */
export async function keyringSigner(seed: Uint8Array): Promise<LocalSigner> {
  await cryptoWaitReady();
  return signerOf(new Keyring({ type: 'sr25519', ss58Format: SS58_PREFIX }).addFromSeed(seed));
}

/** Of an unlocked pair. */
export function signerOf(pair: {
  publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}): LocalSigner {
  return { hotkey: hotkeyOf(pair.publicKey), sign: (message) => pair.sign(message) };
}

// MERGED validator/keys/key-file.ts: Files that hold secrets: only their owner may read them, as systemd hands over credentials too (validator reference 3).
/** Far more than a key or a passphrase needs. */
const MAX_BYTES = 65_536;

/**
 * The text in `path`, without line breaks at its end. Throws ConfigError, for no repeat would help, when it cannot be
 * read, others may read it, or it is too long.
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
