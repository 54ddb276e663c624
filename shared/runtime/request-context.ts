/** Which request the work at hand is done for, whatever it waits for: log lines and requests of ours take its id along. */
import { AsyncLocalStorage } from 'node:async_hooks';

const storage = new AsyncLocalStorage<string>();

/** `work`, and all that comes of it, is done for the request of that id; null: for none. */
export function forRequest<T>(requestId: string | null, work: () => T): T {
  return requestId === null ? storage.exit(work) : storage.run(requestId, work);
}

/** Null outside of requests. */
export function currentRequestId(): string | null {
  return storage.getStore() ?? null;
}
