/** Provides the sessions, their clients and the query cache to the page. */
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createContext,
  type ReactNode,
  use,
  useEffect,
  useState,
  useSyncExternalStore,
} from 'react';
import { type Client, createClient } from '../api/client.ts';
import { type ApiFailure, isRepeated } from '../api/failure.ts';
import {
  isSimulated,
  recordServerDate,
  recordSimulatedTime,
  subscribeSimulation,
} from '../browser/server-time.ts';
import {
  createSessionStore,
  type Session,
  type SessionKind,
  type SessionState,
  type SessionStore,
} from './session-store.ts';

type Caller = { store: SessionStore; client: Client };
type Sessions = Record<SessionKind, Caller>;

const SessionContext = createContext<Sessions | null>(null);

const STALE_MS = 5_000;

export function SessionProvider({ children }: { children: ReactNode }) {
  const [sessions] = useState(createSessions);
  const [queries] = useState(createQueries);
  useEffect(() => {
    const onStorage = ({ key }: StorageEvent) => {
      for (const { store } of Object.values(sessions)) {
        if (key === null || key === store.key) store.reload();
      }
    };
    window.addEventListener('storage', onStorage);
    return () => window.removeEventListener('storage', onStorage);
  }, [sessions]);
  useEffect(() => {
    const endings = Object.values(sessions).map(({ store }) => {
      let { session } = store.get();
      return store.subscribe(() => {
        const { session: next } = store.get();
        if (next?.token === session?.token) return;
        // Another account must not see answers to this one. The same account continues with its page.
        if (next?.name === session?.name) void queries.invalidateQueries();
        else queries.clear();
        session = next;
      });
    });
    return () => {
      for (const end of endings) end();
    };
  }, [sessions, queries]);
  return (
    <SessionContext value={sessions}>
      <QueryClientProvider client={queries}>{children}</QueryClientProvider>
    </SessionContext>
  );
}

function createSessions(): Sessions {
  return { user: callerOf('user'), portal: callerOf('portal') };
}

function callerOf(kind: SessionKind): Caller {
  const store = createSessionStore(kind, window.localStorage);
  const client = createClient({
    fetch: (input, init) => window.fetch(input, init),
    origin: '',
    token: () => store.get().session?.token ?? null,
    onDate: recordServerDate,
    onSimulatedTime: recordSimulatedTime,
    onExpired: store.expire,
  });
  return { store, client };
}

/** Works also if the browser considers itself offline. */
function createQueries(): QueryClient {
  const networkMode = 'always';
  return new QueryClient({
    defaultOptions: {
      queries: { networkMode, staleTime: STALE_MS, retry: isRepeated },
      mutations: { networkMode },
    },
  });
}

function useCaller(kind: SessionKind): Caller {
  const sessions = use(SessionContext);
  if (sessions === null) throw new Error('SessionProvider is missing');
  return sessions[kind];
}

/** Returns the client that sends the session's token. */
export function useClient(kind: SessionKind = 'user'): Client {
  return useCaller(kind).client;
}

/** Returns true if the marketplace is simulated. False until its first answer. */
export function useIsSimulated(): boolean {
  return useSyncExternalStore(subscribeSimulation, isSimulated);
}

/** Returns true if an error concerns a session after which another one has begun, so that it is out of date. */
export function useIsOfEndedSession({ facts: { rejectedToken } }: ApiFailure): boolean {
  const { session: user } = useSession('user');
  const { session: provider } = useSession('portal');
  const sessions = [user, provider].filter((session) => session !== null);
  if (rejectedToken === undefined || sessions.length === 0) return false;
  return sessions.every(({ token }) => token !== rejectedToken);
}

export type UsedSession = SessionState & {
  start(session: Session): void;
  /** Revokes the session on the server and ends it in all tabs. */
  logOut(): Promise<void>;
};

export function useSession(kind: SessionKind = 'user'): UsedSession {
  const { store, client } = useCaller(kind);
  const state = useSyncExternalStore(store.subscribe, store.get);
  return {
    ...state,
    start: store.start,
    async logOut() {
      // Without a connection, the session ends in this browser and expires on the server.
      await client.open(LOG_OUT[kind], { method: 'POST' }).catch(() => undefined);
      store.end();
    },
  };
}

const LOG_OUT: Record<SessionKind, string> = {
  user: '/api/auth/logout',
  portal: '/portal/auth/logout',
};
