/** The id of the current request, carried across awaits into log lines and outgoing requests. */
import { AsyncLocalStorage } from 'node:async_hooks';

const storage = new AsyncLocalStorage<string>();

/** Runs `work`, and everything it starts, under the request id; null clears the id. */
export function withRequestId<T>(requestId: string | null, work: () => T): T {
  return requestId === null ? storage.exit(work) : storage.run(requestId, work);
}

/** Returns null outside a request. */
export function currentRequestId(): string | null {
  return storage.getStore() ?? null;
}
