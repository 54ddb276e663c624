/** Hotkeys at rest, encrypted: the JSON key files (version 3) that the chain's own tools write (validator reference 3). */
import { existsSync } from 'node:fs';
import { Keyring } from '@polkadot/keyring';
import type { KeyringPair$Json } from '@polkadot/keyring/types';
import { cryptoWaitReady } from '@polkadot/util-crypto';
import { z } from 'zod';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { makePrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { hotkeyOf } from '#shared/signing/hotkey.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import { readPrivateText } from './private-file.ts';
import { SS58_PREFIX, signerOf } from './signer.ts';

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
  makePrivateFile(path, `${JSON.stringify(pair.toJson(passphrase))}\n`, random);
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
