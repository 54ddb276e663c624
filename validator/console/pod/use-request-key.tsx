import { useRef } from 'react';
import { randomKey } from '../browser/random.ts';

/**
 * Returns a function from a request to its idempotency key. An equal request has the same key, so that a repeat after a
 * lost answer does not start the work twice; a changed request has another.
 */
export function useRequestKey(): (request: object) => string {
  const last = useRef({ text: '', key: '' });
  return (request) => {
    const text = JSON.stringify(request);
    if (text !== last.current.text) last.current = { text, key: randomKey() };
    return last.current.key;
  };
}
