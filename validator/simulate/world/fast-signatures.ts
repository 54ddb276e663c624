/**
 * Signatures of the validator's requests, which cost a thousandth of an sr25519 signature. Signer and verifier share the
 * key, because both are in this process.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Signer, Verify } from '#shared/signing/sr25519.ts';

const NONCE_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** `nonces` returns 32 bytes, so that two signatures of one message differ. */
export function createFastSignatures(
  hotkey: Hotkey,
  { key, nonces }: { key: Uint8Array; nonces(): Uint8Array },
): { signer: Signer; verify: Verify } {
  const macOf = (nonce: Uint8Array, message: Uint8Array): Buffer =>
    hash('sha256', Buffer.concat([key, nonce, message]), 'buffer');
  return {
    signer: {
      hotkey,
      sign(message) {
        const nonce = nonces();
        return new Uint8Array(Buffer.concat([nonce, macOf(nonce, message)]));
      },
    },
    verify(message, signature) {
      if (signature.length !== SIGNATURE_BYTES) return false;
      const mac = macOf(signature.subarray(0, NONCE_BYTES), message);
      return timingSafeEqual(mac, signature.subarray(NONCE_BYTES));
    },
  };
}
