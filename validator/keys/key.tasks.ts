/** What the key thread does: it opens keys, which never leave it, and signs with them. */
import { systemRandom } from '#shared/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import { type KeyPlace, openKey } from './key-place.ts';

export type KeyTask =
  /** Makes a seed where there is none. */
  | { kind: 'open'; place: KeyPlace }
  /** `key` is what the opening was answered with. */
  | { kind: 'sign'; key: number; message: Uint8Array };
export type KeyAnswer = { key: number; hotkey: Hotkey } | { signature: Uint8Array };

/** Of a process: a few. */
const MAX_KEYS = 16;

export function createKeyTasks() {
  const signers: LocalSigner[] = [];
  return async (task: KeyTask): Promise<KeyAnswer> => {
    if (task.kind === 'open') {
      if (signers.length >= MAX_KEYS) throw new RangeError(`more than ${MAX_KEYS} keys`);
      const signer = await openKey(task.place, systemRandom);
      return { key: signers.push(signer) - 1, hotkey: signer.hotkey };
    }
    const signer = signers[task.key];
    if (signer === undefined) throw new RangeError(`there is no key ${task.key}`);
    return { signature: signer.sign(task.message) };
  };
}
