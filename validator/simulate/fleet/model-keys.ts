/** Keys and ids of modelled parties, which a number determines. */
import { createSigner } from '#shared/signing/sr25519.ts';

/** Returns the hotkey whose seed repeats one byte. */
export const hotkey = (byte: number) => createSigner(new Uint8Array(32).fill(byte)).hotkey;

/** Returns the id of an executor with this number. */
export const executorId = (number: number) =>
  `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
