/** The one way to a key of ours: whoever holds a Signer can sign with it, and nobody can read it. */
import { Keyring } from '@polkadot/keyring';
import { cryptoWaitReady } from '@polkadot/util-crypto';
import type { Random } from '#shared/random.ts';
import { hotkeyOf } from '#shared/signing/hotkey.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { readOrCreateSeedFile } from './seed-file.ts';

/** Of every address that we show or take. */
export const SS58_PREFIX = 42;

/** The signer of a validator or provider, through the chain's own key library. */
export async function keyringSigner(seed: Uint8Array): Promise<Signer> {
  await cryptoWaitReady();
  return signerOf(new Keyring({ type: 'sr25519', ss58Format: SS58_PREFIX }).addFromSeed(seed));
}

/** The signer whose seed lies in `path`, made there on the first start. */
export function seedFileSigner(path: string, random: Random): Promise<Signer> {
  return keyringSigner(readOrCreateSeedFile(path, random));
}

/** Of an unlocked pair. */
export function signerOf(pair: {
  publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}): Signer {
  return { hotkey: hotkeyOf(pair.publicKey), sign: (message) => pair.sign(message) };
}
