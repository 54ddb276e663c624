/** Follows the events of the account, and resumes after every interruption with the id of the last event. */
import type { AccountEvent } from './api.gen.ts';
import type { Client } from './client.ts';
import { eventsIn } from './event-stream.ts';
import { failureOf } from './failure.ts';

export type FollowPorts = {
  client: Client;
  /** Resolves after the time, or when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  signal: AbortSignal;
  onEvent(event: AccountEvent): void;
};

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;

/** Resolves when the signal aborts or the session has ended. Pauses grow from a second to 30 s while the server fails. */
export async function followAccountEvents(ports: FollowPorts): Promise<void> {
  const { client, signal, sleep, onEvent } = ports;
  let lastId: string | null = null;
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      const response = await client.open('/api/users/me/events/stream', {
        headers: lastId === null ? {} : { 'Last-Event-ID': lastId },
        signal,
      });
      if (response.body === null) return;
      for await (const { id, event, data } of eventsIn(response.body)) {
        pauseMs = FIRST_PAUSE_MS;
        if (id !== null) lastId = id;
        if (event === 'event') onEvent(JSON.parse(data) as AccountEvent);
      }
    } catch (error) {
      if (failureOf(error).isExpired) return;
    }
    await sleep(pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
  }
}
