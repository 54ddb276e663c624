/**
 * The session of one kind of caller, in a storage that all tabs of the browser share. A session that the server rejects
 * becomes expired: its page stays, and a dialog requests a log-in.
 */

export type SessionKind = 'user' | 'portal';

export type Session = {
  token: string;
  /** E-mail address or hotkey, which the page shows. */
  name: string;
};

export type SessionState = {
  session: Session | null;
  /** True after the server has rejected the token, until the next log-in or log-out. */
  isExpired: boolean;
};

export type SessionStore = ReturnType<typeof createSessionStore>;

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export function createSessionStore(kind: SessionKind, storage: Store) {
  const key = storageKey(kind);
  let state: SessionState = { session: parseSession(storage.getItem(key)), isExpired: false };
  const listeners = new Set<() => void>();

  function change(next: SessionState): void {
    state = next;
    for (const listener of listeners) listener();
  }

  return {
    key,
    get: () => state,
    /** Returns the function that ends the subscription. */
    subscribe(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    start(session: Session): void {
      storage.setItem(key, JSON.stringify(session));
      change({ session, isExpired: false });
    },
    end(): void {
      storage.removeItem(key);
      change({ session: null, isExpired: false });
    },
    /** Records that the server rejected a token. A newer session, which another request may have started, stays. */
    expire(token: string): void {
      if (state.session?.token === token && !state.isExpired) change({ ...state, isExpired: true });
    },
    /** Reads the storage again, after another tab has logged in or out. */
    reload(): void {
      const session = parseSession(storage.getItem(key));
      if (session?.token !== state.session?.token) change({ session, isExpired: false });
    },
  };
}

export function storageKey(kind: SessionKind): string {
  return `podwright.session.${kind}`;
}

function parseSession(text: string | null): Session | null {
  try {
    const { token, name } = JSON.parse(text ?? '{}') as Partial<Session>;
    return typeof token === 'string' && typeof name === 'string' ? { token, name } : null;
  } catch {
    return null;
  }
}
