/** Words between the processes that share a database, by LISTEN and NOTIFY: a hint to look, never the only news. */
import type { Client } from 'pg';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { isPostgresAddress } from '../../../database/target.ts';

const CHANNEL = 'podwright_wake';
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10_000;

export type Signals = {
  /** Has every other process look at what the word names; lost when the server cannot be reached, for their own pace finds it too. */
  send(word: string): void;
  /** `onSignal` runs for every word of another process, and with null once after a break in the connection. */
  listen(onSignal: (word: string | null) => void): void;
  close(): Promise<void>;
};

export type SignalsDeps = { target: string; clock: Clock; log: Log };

/** Null for a database that no other process shares. The connection comes, and comes back, by itself. */
export function openSignals({ target, clock, log }: SignalsDeps): Signals | null {
  if (!isPostgresAddress(target)) return null;
  const closing = new AbortController();
  let client: Client | null = null;
  let hear: (word: string | null) => void = () => undefined;

  /** Resolves when the connection is lost; rejects when there was none to be had. */
  async function hold(): Promise<void> {
    const { connectClient } = await import('../../../database/postgres.ts');
    const connected = await connectClient(target, 'podwright-central-signals');
    const lost = new Promise<void>((resolve) => {
      connected.once('end', resolve);
      closing.signal.addEventListener('abort', () => resolve());
    });
    try {
      const { rows } = await connected.query<{ own: string }>(
        'select pg_backend_pid()::text as own',
      );
      const own = rows[0]?.own;
      connected.on('notification', ({ payload = '' }) => {
        const [sender, ...words] = payload.split(' ');
        if (sender !== own) hear(words.join(' '));
      });
      await connected.query(`listen ${CHANNEL}`);
      client = connected;
      hear(null);
      await lost;
    } finally {
      client = null;
      await connected.end().catch(() => undefined);
    }
  }

  async function holdAlways(): Promise<void> {
    let retryMs = FIRST_RETRY_MS;
    while (!closing.signal.aborted) {
      try {
        await hold();
        retryMs = FIRST_RETRY_MS;
      } catch (error) {
        log.warn({ err: error }, 'no connection for signals between processes');
      }
      await clock.sleep(retryMs, closing.signal).catch(() => undefined);
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    }
  }

  const ended = holdAlways();
  return {
    send(word) {
      const sender = client;
      // The connection's own number, by which it knows its words when they come back.
      sender
        ?.query("select pg_notify($1, pg_backend_pid()::text || ' ' || $2)", [CHANNEL, word])
        .catch((error: unknown) => log.warn({ err: error }, 'a signal was not sent'));
    },
    listen(onSignal) {
      hear = onSignal;
    },
    async close() {
      closing.abort();
      await ended;
    },
  };
}
