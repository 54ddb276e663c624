/** Holds the keys of a process in a thread, so that other code can sign with them but not read them. */
import { ConfigError } from '#shared/runtime/config.ts';
import { createThreadCalls } from '#shared/runtime/thread-calls.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { KeyAnswer, KeyTask } from './key.tasks.ts';
import type { KeyLocation } from './key-file.ts';

export type KeyThread = ReturnType<typeof createKeyThread>;

/** Starts the key thread, which does not keep the process alive. */
export function createKeyThread() {
  const { call, waiting, close } = createThreadCalls<KeyTask, KeyAnswer>(
    new URL('./key.worker.ts', import.meta.url),
    null,
  );
  return {
    /** Opens a key and creates a missing seed. Rejects with ConfigError for an unprotected or invalid file. */
    async open(location: KeyLocation): Promise<Signer> {
      const opened = await call({ kind: 'open', location });
      if ('refused' in opened) throw new ConfigError(opened.refused);
      if (!('key' in opened)) return unexpectedAnswer();
      const { key, hotkey } = opened;
      return {
        hotkey,
        async sign(message) {
          // Copied, because posting a slice would send its whole buffer.
          const signed = await call({ kind: 'sign', key, message: new Uint8Array(message) });
          return 'signature' in signed ? signed.signature : unexpectedAnswer();
        },
      };
    },
    /** Number of pending signatures. */
    waiting,
    close,
  };
}

function unexpectedAnswer(): never {
  throw new Error('unexpected answer of the key thread');
}
