/**
 * Marks requests that must succeed although resources are used up, such as the removal of a pod. They may use a reserve
 * of connections and of disk space.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

const storage = new AsyncLocalStorage<true>();

/** Runs `work`, and everything it starts, with access to the reserves. */
export function urgently<T>(work: () => T): T {
  return storage.run(true, work);
}

export function isUrgent(): boolean {
  return storage.getStore() === true;
}
