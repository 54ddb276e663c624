/** What a hotkey signs to say that an account of the central API is its own (contract 11). Pure. */
import { z } from 'zod';
import { Hotkey, publicKeyOf } from './hotkey.ts';
import { type Signer, signatureFromHex, toHex, verifySr25519 } from './sr25519.ts';

const MAX_SECONDS = 999_999_999_999;

export const AccountProof = z
  .object({
    hotkey: Hotkey,
    /** Seconds since the epoch, when it was signed. */
    timestamp: z.int().min(0).max(MAX_SECONDS),
    /** sr25519, `0x` + hex. */
    signature: z.string().max(200),
  })
  .meta({ id: 'AccountProof' });
export type AccountProof = z.output<typeof AccountProof>;

/** Nothing else that is signed has this form. */
const textOf = (accountId: string, timestamp: number): Uint8Array =>
  new TextEncoder().encode(`podwright-account-v1\n${accountId}\n${timestamp}`);

export async function signAccountProof(
  signer: Signer,
  accountId: string,
  nowMs: number,
): Promise<AccountProof> {
  const timestamp = Math.floor(nowMs / 1_000);
  const signature = await signer.sign(textOf(accountId, timestamp));
  return { hotkey: signer.hotkey, timestamp, signature: toHex(signature) };
}

/** Whether the hotkey signed it for this account; its age is for the caller to judge. */
export function verifyAccountProof(accountId: string, proof: AccountProof): boolean {
  const key = publicKeyOf(proof.hotkey);
  const signature = signatureFromHex(proof.signature.toLowerCase());
  if (key === null || signature === null) return false;
  return verifySr25519(textOf(accountId, proof.timestamp), signature, key);
}
