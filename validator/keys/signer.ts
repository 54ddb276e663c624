/** Pairs of the chain's own key library as signers: in the key thread, and in commands that sign once and end. */
import { Keyring } from '@polkadot/keyring';
import { cryptoWaitReady } from '@polkadot/util-crypto';
import { hotkeyOf } from '#shared/signing/hotkey.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';

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
