/** Verifies sr25519 signatures of validators. Pure. Loaded on demand, because its libraries are large. */
import { base58, hex } from '@scure/base';
import { verify } from '@scure/sr25519';

const PREFIX = 42;
const PUBLIC_KEY_BYTES = 32;
const ADDRESS_BYTES = 1 + PUBLIC_KEY_BYTES + 2;

/** Returns true only if `signature` (`0x` and hex) is that of the ss58 address `signer` over exactly `text` as UTF-8. */
export function isSignedBy(signer: string, text: string, signature: string): boolean {
  if (!/^0x[0-9a-f]{128}$/.test(signature)) return false;
  try {
    const address = base58.decode(signer);
    if (address.length !== ADDRESS_BYTES || address[0] !== PREFIX) return false;
    const key = address.slice(1, 1 + PUBLIC_KEY_BYTES);
    return verify(new TextEncoder().encode(text), hex.decode(signature.slice(2)), key);
  } catch {
    return false;
  }
}
