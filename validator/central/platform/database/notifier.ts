/**
 * Notifications between the parts of one process and, on PostgreSQL, between processes that share a database. A
 * notification requests a query of the database. It is sent before its transaction commits, and it may be lost, so
 * every listener also polls.
 */
import type { KyselyPlugin } from 'kysely';
import type { Client } from 'pg';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { isPostgresAddress } from '../../../database/open-database.ts';
import type { Database, Db } from './tables.ts';

/**
 * - `due`: a row was put on the schedule; listeners receive its due time. Other processes find such rows by polling.
 * - `sync`: an executor is due for a sync. Runs listeners in other processes only.
 * - `events ID`: the account has new events. Runs listeners in all processes.
 */
export type Topic = 'due' | 'sync' | `events ${string}`;

/** `atMs` is the time that was passed to `notify`, or NaN if there is none. */
export type Listener = (atMs: number) => void;

export type Notifier = {
  /** True if other processes may use the same database. */
  isShared: boolean;
  /**
   * Returns false while notifications of other processes cannot arrive, because the connection is lost or the database
   * is behind a pooler. Listeners then poll more often.
   */
  receivesOthers(): boolean;
  notify(topic: Topic, atMs?: number): void;
  /**
   * Calls `listener` for every notification of the topic, and once after each connection to PostgreSQL, because
   * notifications may have been lost before the connection. Returns a function that removes the listener.
   */
  onNotify(topic: Topic, listener: Listener): () => void;
  close(): Promise<void>;
};

/** Delivers topics to the other processes. */
type Channel = {
  isOpen(): boolean;
  send(topic: string): void;
  close(): Promise<void>;
};

const CHANNEL = 'podwright_wake';
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10_000;
/**
 * Minimum interval between two notifications of other processes about the events of one account. No event is lost,
 * because listeners continue to poll for longer than this interval.
 */
const EVENTS_INTERVAL_MS = 100;

export type NotifierDeps = { target: string; clock: Clock; log: Log };

/**
 * Creates the notifier for the database at the address `target`. On PostgreSQL it connects, and reconnects, in the
 * background.
 */
export function openNotifier({ target, clock, log }: NotifierDeps): Notifier {
  return createNotifier(clock, (onReceive) =>
    isPostgresAddress(target) ? openChannel({ target, clock, log }, onReceive) : null,
  );
}

/**
 * Creates a notifier. `openOthers` opens the channel to other processes. It receives a function, which it must call
 * with each topic that it receives, and with null after each connection.
 */
export function createNotifier(
  clock: Clock,
  openOthers: (onReceive: (topic: string | null) => void) => Channel | null = () => null,
): Notifier {
  const listeners = new Map<string, Set<Listener>>();
  /** Topics about which other processes were notified within the last EVENTS_INTERVAL_MS. */
  const recent = new Set<string>();

  function run(topic: string, atMs: number): void {
    for (const listener of listeners.get(topic) ?? []) listener(atMs);
  }

  const others = openOthers((topic) => {
    const topics = topic === null ? [...listeners.keys()].filter(isShared) : [topic];
    for (const each of topics) run(each, Number.NaN);
  });

  function notifyOthers(topic: Topic): void {
    if (others === null || recent.has(topic)) return;
    others.send(topic);
    if (topic === 'sync') return;
    recent.add(topic);
    void clock.sleep(EVENTS_INTERVAL_MS).then(() => recent.delete(topic));
  }

  return {
    isShared: others !== null,
    receivesOthers: () => others?.isOpen() ?? true,
    notify(topic, atMs = Number.NaN) {
      if (topic !== 'sync') run(topic, atMs);
      if (isShared(topic)) notifyOthers(topic);
    },
    onNotify(topic, listener) {
      const ofTopic = listeners.get(topic) ?? new Set();
      listeners.set(topic, ofTopic.add(listener));
      return () => {
        ofTopic.delete(listener);
        if (ofTopic.size === 0) listeners.delete(topic);
      };
    },
    close: async () => others?.close(),
  };
}

function isShared(topic: string): boolean {
  return topic !== 'due';
}

/** Kysely passes plugins from a handle to its transactions. This plugin changes no query. */
type NotifierPlugin = KyselyPlugin & { notifier: Notifier };

/** Returns a handle that notifies through `notifier`. The transactions of the handle do so, too. */
export function withNotifier(db: Database, notifier: Notifier): Database {
  const plugin: NotifierPlugin = {
    notifier,
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => result,
  };
  return db.withPlugin(plugin);
}

/** Notifies through every notifier of the handle. Store functions call it after a write, before the commit. */
export function notifyFrom(db: Db, topic: Topic, atMs?: number): void {
  for (const plugin of db.getExecutor().plugins) {
    if ('notifier' in plugin) (plugin as NotifierPlugin).notifier.notify(topic, atMs);
  }
}

/**
 * Opens a channel that uses LISTEN and NOTIFY on one connection. The connection is opened again whenever it is lost.
 * Behind a pooler, the channel stays silent.
 */
function openChannel(
  { target, clock, log }: NotifierDeps,
  onReceive: (topic: string | null) => void,
): Channel {
  const closing = new AbortController();
  let client: Client | null = null;

  /**
   * Resolves with true when the connection is lost, and with false if a pooler is in between, which would lose the
   * LISTEN after its transaction. Rejects if the connection could not be made.
   */
  async function listen(): Promise<boolean> {
    const { connectClient } = await import('../../../database/postgres.ts');
    const { client: connected, pooled } = await connectClient(target, 'podwright-central-signals');
    if (pooled) {
      await connected.end().catch(() => undefined);
      log.info('the database is behind a pooler: processes poll instead of notifying each other');
      return false;
    }
    const lost = new Promise<void>((resolve) => {
      connected.once('end', resolve);
      closing.signal.addEventListener('abort', () => resolve());
      // The notifier may be closed while this connection is made, as in a start that fails.
      if (closing.signal.aborted) resolve();
    });
    try {
      const { rows } = await connected.query<{ own: string }>(
        'select pg_backend_pid()::text as own',
      );
      const own = rows[0]?.own;
      connected.on('notification', ({ payload = '' }) => {
        const [sender, ...topic] = payload.split(' ');
        if (sender !== own) onReceive(topic.join(' '));
      });
      await connected.query(`listen ${CHANNEL}`);
      client = connected;
      onReceive(null);
      await lost;
      return true;
    } finally {
      client = null;
      await connected.end().catch(() => undefined);
    }
  }

  async function listenAlways(): Promise<void> {
    let retryMs = FIRST_RETRY_MS;
    while (!closing.signal.aborted) {
      try {
        if (!(await listen())) return;
        retryMs = FIRST_RETRY_MS;
      } catch (error) {
        log.warn(
          { err: error },
          'opening the connection for notifications between processes failed',
        );
      }
      await clock.sleep(retryMs, closing.signal).catch(() => undefined);
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    }
  }

  const ended = listenAlways();
  return {
    isOpen: () => client !== null,
    send(topic) {
      // A process skips its own notifications, which it recognises by the backend pid of the sender.
      const present = client;
      present
        ?.query("select pg_notify($1, pg_backend_pid()::text || ' ' || $2)", [CHANNEL, topic])
        .catch((error: unknown) => {
          log.warn({ err: error }, 'notification not sent');
          // A server that does not answer, or became a standby, also sends no notifications.
          void present.end();
        });
    },
    async close() {
      closing.abort();
      await ended;
    },
  };
}
