/** What the key thread does: it opens keys, which never leave it, and signs with them. */
import { ConfigError } from '#shared/runtime/config.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import { type KeyLocation, openKey } from './key-file.ts';

export type KeyTask =
  /** Makes a seed where there is none. */
  | { kind: 'open'; place: KeyLocation }
  /** `key` is what the opening was answered with. */
  | { kind: 'sign'; key: number; message: Uint8Array };
export type KeyAnswer =
  | { key: number; hotkey: Hotkey }
  /** Why what lies there is not to be opened, which no repeat would change. */
  | { refused: string }
  | { signature: Uint8Array };

/** Of a process: a few. */
const MAX_KEYS = 16;

export function createKeyTasks() {
  const signers: LocalSigner[] = [];

  /** Only texts go from thread to thread: what kind of error it is would be lost. */
  async function open(place: KeyLocation): Promise<KeyAnswer> {
    try {
      const signer = await openKey(place, systemRandom);
      return { key: signers.push(signer) - 1, hotkey: signer.hotkey };
    } catch (error) {
      if (error instanceof ConfigError) return { refused: error.message };
      throw error;
    }
  }

  return async (task: KeyTask): Promise<KeyAnswer> => {
    if (task.kind === 'open') {
      if (signers.length >= MAX_KEYS) throw new RangeError(`more than ${MAX_KEYS} keys`);
      return open(task.place);
    }
    const signer = signers[task.key];
    if (signer === undefined) throw new RangeError(`there is no key ${task.key}`);
    return { signature: signer.sign(task.message) };
  };
}
