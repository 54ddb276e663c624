/**
 * Requests for mails to an address that may have no account. Their work begins after the response, so that neither the
 * response nor its time reveals whether an account has the address.
 */
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';

/** Maximum number of requests whose work has not ended. */
const MAX_OPEN = 1_000;
const CONCURRENT = 2;

export type MailRequests = ReturnType<typeof createMailRequests>;

export function createMailRequests({ log }: { log: Log }) {
  const semaphore = createSemaphore(CONCURRENT);
  const open = new Set<Promise<void>>();

  async function perform(work: () => Promise<void>): Promise<void> {
    // The response is sent before the next turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    try {
      await semaphore.run(work);
    } catch (error) {
      // The client has its response; it can only repeat the request.
      log.error({ detail: messageOf(error) }, 'requested mail could not be stored');
    }
  }

  return {
    /** Queues the work. Throws `rate_limited`, for every address, if too much work waits. */
    add(work: () => Promise<void>): void {
      if (open.size >= MAX_OPEN) {
        throw new ApiError('rate_limited', 'Too many requests for mails are waiting', {
          headers: { 'Retry-After': '60' },
        });
      }
      const done = perform(work).finally(() => open.delete(done));
      open.add(done);
    },

    /** Resolves when all queued work has ended. */
    async settle(): Promise<void> {
      await Promise.all(open);
    },
  };
}
