/** Follows the event stream of each renter through all faults, as a client that resumes with the last id. */
import { systemClock } from '#shared/runtime/clock.ts';
import { framesOf } from '../fakes/scenes/event-follower.ts';
import type { ChaosAccount } from './chaos-client.ts';

const RECONNECT_AFTER_MS = 500;

export type EventFollower = {
  /** Ids in the order of their arrival. */
  received: string[];
  /** Numbers of gaps that the stream has reported. */
  gaps(): number;
  stop(): Promise<void>;
};

export function followEvents(
  origin: string,
  { apiKey }: Pick<ChaosAccount, 'apiKey'>,
): EventFollower {
  const received: string[] = [];
  const ending = new AbortController();
  let gaps = 0;

  async function follow(): Promise<void> {
    const last = received.at(-1);
    const response = await fetch(`${origin}/api/users/me/events/stream`, {
      headers: { 'x-api-key': apiKey, ...(last === undefined ? {} : { 'last-event-id': last }) },
      signal: ending.signal,
    });
    if (!response.ok) throw new Error(String(response.status));
    for await (const { id, event } of framesOf(response)) {
      if (event === 'gap') gaps += 1;
      if (event === 'event' && id !== null) received.push(id);
    }
  }

  async function loop(): Promise<void> {
    while (!ending.signal.aborted) {
      await follow().catch(() => undefined);
      await systemClock.sleep(RECONNECT_AFTER_MS, ending.signal).catch(() => undefined);
    }
  }

  const done = loop();
  return {
    received,
    gaps: () => gaps,
    async stop() {
      ending.abort();
      await done;
    },
  };
}
