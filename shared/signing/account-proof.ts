/** A hotkey's signed proof that it owns an account of the central API. Pure. */

import { z } from 'zod';
import { Hotkey, publicKeyOf } from './hotkey.ts';
import { type Signer, signatureFromHex, toHex, verifySr25519 } from './sr25519.ts';

const MAX_SECONDS = 999_999_999_999;

export const AccountProof = z
  .object({
    hotkey: Hotkey.describe('ss58 of the validator.'),
    timestamp: z
      .int()
      .min(0)
      .max(MAX_SECONDS)
      .describe('Time of signing in seconds since the epoch.'),
    signature: z
      .string()
      .max(200)
      .describe(
        'sr25519 signature by the hotkey over `podwright-account-v1`, the id of the account and the timestamp, separated by line breaks; `0x` and hex.',
      ),
  })
  .meta({ id: 'AccountProof' });
export type AccountProof = z.output<typeof AccountProof>;

/** The prefix prevents reuse of signatures made for other purposes. */
const signedText = (accountId: string, timestamp: number): Uint8Array =>
  new TextEncoder().encode(`podwright-account-v1\n${accountId}\n${timestamp}`);

export async function signAccountProof(
  signer: Signer,
  accountId: string,
  nowMs: number,
): Promise<AccountProof> {
  const timestamp = Math.floor(nowMs / 1_000);
  const signature = await signer.sign(signedText(accountId, timestamp));
  return { hotkey: signer.hotkey, timestamp, signature: toHex(signature) };
}

/** Returns true if the hotkey signed the proof for this account. The caller checks its age. */
export function verifyAccountProof(accountId: string, proof: AccountProof): boolean {
  const key = publicKeyOf(proof.hotkey);
  const signature = signatureFromHex(proof.signature.toLowerCase());
  if (key === null || signature === null) return false;
  return verifySr25519(signedText(accountId, proof.timestamp), signature, key);
}
