/**
 * Whether the credentials that streams were opened with still stand: one look at the database for all streams
 * of this process, however many they are. A word from who ended one would be quicker, but words can be lost.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import type { Sessions } from './session.ts';

type Credential = UserIdentity['credential'];

export type CredentialWatch = ReturnType<typeof createCredentialWatch>;

/** Streams end within five seconds (marketplace reference 1.4): a pause, the look, and some to spare. */
const PAUSE_MS = 4_000;

export function createCredentialWatch(deps: {
  db: Database;
  clock: Clock;
  log: Log;
  sessions: Sessions;
  /** Those of these ids that would still be recognised. */
  apiKeys: { standing(ids: readonly string[]): Promise<string[]> };
  stopping: AbortSignal;
}) {
  const { db, clock, log, sessions, apiKeys, stopping } = deps;
  const watched = new Map<AbortController, Credential>();
  let isLooking = false;

  async function look(): Promise<void> {
    const asked = [...watched];
    const idsOf = (type: Credential['type']) => {
      const ids = asked.filter(([, it]) => it.type === type).map(([, it]) => idOf(it));
      return [...new Set(ids)];
    };
    const standing = new Set([
      ...(await apiKeys.standing(idsOf('api_key'))),
      ...(await sessions.standing(db, idsOf('session'))),
    ]);
    for (const [stream, credential] of asked) if (!standing.has(idOf(credential))) stream.abort();
  }

  /** As long as anything is watched. */
  async function lookAlways(): Promise<void> {
    isLooking = true;
    for (;;) {
      await clock.sleep(PAUSE_MS, stopping).catch(() => undefined);
      if (watched.size === 0 || stopping.aborted) break;
      // A failing database is no revocation.
      await look().catch((error: unknown) => {
        log.warn({ err: error }, 'the credentials of streams were not looked at');
      });
    }
    isLooking = false;
  }

  return {
    /** Aborts when the credential is revoked or runs out; watched until `over` aborts. */
    revoked(credential: Credential, over: AbortSignal): AbortSignal {
      const stream = new AbortController();
      if (over.aborted) return stream.signal;
      watched.set(stream, credential);
      over.addEventListener('abort', () => watched.delete(stream), { once: true });
      if (!isLooking) void lookAlways();
      return stream.signal;
    },
  };
}

function idOf(credential: Credential): string {
  return credential.type === 'api_key' ? credential.keyId : credential.sessionId;
}
