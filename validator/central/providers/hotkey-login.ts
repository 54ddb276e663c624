/** Whether a log-in was signed just now by its hotkey (contract 10). Pure. */
import { publicKeyOf } from '#shared/signing/hotkey.ts';
import { type Verify, verifySr25519 } from '#shared/signing/sr25519.ts';
import type { PortalLogin } from './provider.schemas.ts';

/** Largest distance between the signed time and ours, either way. */
export const LOGIN_WINDOW_MS = 300_000;
const SECOND_MS = 1_000;

export type LoginFault = 'not signed' | 'outside the window';

/** When the signature stops being acceptable, in milliseconds, or why it is not acceptable now. */
export function loginExpiry(
  { miner_hotkey, message, signature }: PortalLogin,
  nowMs: number,
  verify: Verify = verifySr25519,
): number | LoginFault {
  if (!/^\d{1,12}$/.test(message)) return 'not signed';
  const signedAtMs = Number(message) * SECOND_MS;
  if (Math.abs(nowMs - signedAtMs) > LOGIN_WINDOW_MS) return 'outside the window';
  const publicKey = publicKeyOf(miner_hotkey);
  const bytes = bytesOf(signature);
  if (publicKey === null || bytes === null) return 'not signed';
  // Browser wallets wrap what they sign.
  const texts = [message, `<Bytes>${message}</Bytes>`].map((text) =>
    new TextEncoder().encode(text),
  );
  const signed = texts.some((text) => verify(text, bytes, publicKey));
  return signed ? signedAtMs + LOGIN_WINDOW_MS : 'not signed';
}

function bytesOf(signature: string): Uint8Array | null {
  const digits = /^(?:0x)?([0-9a-f]{128})$/i.exec(signature)?.[1];
  return digits === undefined ? null : new Uint8Array(Buffer.from(digits, 'hex'));
}
