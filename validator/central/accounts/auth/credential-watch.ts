/**
 * Ends streams whose credential is revoked or expired. Polls the database with one query for all streams of this
 * process, because a notification can be lost.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import type { Sessions } from './session.ts';

type Credential = UserIdentity['credential'];

export type CredentialWatch = ReturnType<typeof createCredentialWatch>;

/** Pause between two polls. Streams must end within five seconds of a revocation, including the query and a margin. */
const PAUSE_MS = 4_000;

export function createCredentialWatch(deps: {
  db: Database;
  clock: Clock;
  log: Log;
  sessions: Sessions;
  apiKeys: { listActive(ids: readonly string[]): Promise<string[]> };
  stopping: AbortSignal;
}) {
  const { db, clock, log, sessions, apiKeys, stopping } = deps;
  const watched = new Map<AbortController, Credential>();
  let isPolling = false;

  async function check(): Promise<void> {
    const streams = [...watched];
    const idsOf = (type: Credential['type']) => {
      const ids = streams.filter(([, it]) => it.type === type).map(([, it]) => idOf(it));
      return [...new Set(ids)];
    };
    const live = new Set([
      ...(await apiKeys.listActive(idsOf('api_key'))),
      ...(await sessions.listLive(db, idsOf('session'))),
    ]);
    for (const [stream, credential] of streams) if (!live.has(idOf(credential))) stream.abort();
  }

  /** Runs while any stream is watched. */
  async function poll(): Promise<void> {
    isPolling = true;
    for (;;) {
      await clock.sleep(PAUSE_MS, stopping).catch(() => undefined);
      if (watched.size === 0 || stopping.aborted) break;
      // A database error does not revoke credentials.
      await check().catch((error: unknown) => {
        log.warn({ err: error }, 'checking the credentials of streams failed');
      });
    }
    isPolling = false;
  }

  return {
    /** Returns a signal that aborts when the credential is revoked or expires. Stops watching when `over` aborts. */
    revoked(credential: Credential, over: AbortSignal): AbortSignal {
      const stream = new AbortController();
      if (over.aborted) return stream.signal;
      watched.set(stream, credential);
      over.addEventListener('abort', () => watched.delete(stream), { once: true });
      if (!isPolling) void poll();
      return stream.signal;
    },
  };
}

function idOf(credential: Credential): string {
  return credential.type === 'api_key' ? credential.keyId : credential.sessionId;
}
