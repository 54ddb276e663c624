/** Tasks of the key thread: opens keys, which never leave the thread, and signs with them. */
import { ConfigError } from '#shared/runtime/config.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import { type KeyLocation, openKey } from './key-file.ts';

export type KeyTask =
  /** Opens a key, and creates a missing seed. */
  | { kind: 'open'; location: KeyLocation }
  /** `key` is the number that `open` returned. */
  | { kind: 'sign'; key: number; message: Uint8Array };
export type KeyAnswer =
  | { key: number; hotkey: Hotkey }
  /** Configuration error of the key's files. */
  | { refused: string }
  | { signature: Uint8Array };

const MAX_KEYS = 16;

export function createKeyTasks() {
  const signers: LocalSigner[] = [];

  /** Returns configuration errors as text, because errors lose their class between threads. */
  async function open(location: KeyLocation): Promise<KeyAnswer> {
    try {
      const signer = await openKey(location, systemRandom);
      return { key: signers.push(signer) - 1, hotkey: signer.hotkey };
    } catch (error) {
      if (error instanceof ConfigError) return { refused: error.message };
      throw error;
    }
  }

  return async (task: KeyTask): Promise<KeyAnswer> => {
    if (task.kind === 'open') {
      if (signers.length >= MAX_KEYS) throw new RangeError(`more than ${MAX_KEYS} keys`);
      return open(task.location);
    }
    const signer = signers[task.key];
    if (signer === undefined) throw new RangeError(`there is no key ${task.key}`);
    return { signature: signer.sign(task.message) };
  };
}
