import { useState } from 'react';
import { mayHaveSucceeded } from '../api/failure.ts';
import { randomKey } from '../browser/random.ts';

/**
 * Idempotency key of a form. `once` keeps the key while a failed request may have had its effect, so that a repeat
 * cannot have it twice.
 */
export function useIdempotencyKey(): {
  idempotencyKey: string;
  /** Makes the next request a new one. */
  renew: () => void;
  once: <Result>(send: (idempotencyKey: string) => Promise<Result>) => Promise<Result>;
} {
  const [idempotencyKey, setKey] = useState(randomKey);
  return {
    idempotencyKey,
    renew: () => setKey(randomKey()),
    async once(send) {
      try {
        return await send(idempotencyKey);
      } catch (error) {
        if (!mayHaveSucceeded(error)) setKey(randomKey());
        throw error;
      }
    },
  };
}
