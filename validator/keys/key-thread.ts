/** The keys of a process, in a thread of their own: whoever holds a Signer can sign, and nobody can read (validator reference 3). */
import { ConfigError } from '#shared/runtime/config.ts';
import { createThreadCalls } from '#shared/runtime/thread-calls.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { KeyAnswer, KeyTask } from './key.tasks.ts';
import type { KeyLocation } from './key-file.ts';

export type KeyThread = ReturnType<typeof createKeyThread>;

/** It keeps no process from ending. */
export function createKeyThread() {
  const { call, waiting, close } = createThreadCalls<KeyTask, KeyAnswer>(
    new URL('./key.worker.ts', import.meta.url),
    null,
  );
  return {
    /** Makes a seed where there is none. Rejects with ConfigError for a file that others may read or that holds something else. */
    async open(place: KeyLocation): Promise<Signer> {
      const opened = await call({ kind: 'open', place });
      if ('refused' in opened) throw new ConfigError(opened.refused);
      if (!('key' in opened)) return unexpectedAnswer();
      const { key, hotkey } = opened;
      return {
        hotkey,
        async sign(message) {
          // A copy: of a piece of a pool the whole pool would be sent.
          const signed = await call({ kind: 'sign', key, message: new Uint8Array(message) });
          return 'signature' in signed ? signed.signature : unexpectedAnswer();
        },
      };
    },
    /** Signatures that were asked for and not given yet. */
    waiting,
    close,
  };
}

function unexpectedAnswer(): never {
  throw new Error('the key thread answered something else');
}
