import { type ReactNode, Suspense, useEffect, useMemo, useState } from 'react';
import { failureFrom } from '../api/failure.ts';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { lazyPart } from '../parts/lazy-part.tsx';
import { usePageNotice } from '../parts/page-notices.tsx';
import { Loading } from '../parts/panel.tsx';
import { useClient, useSession } from './session.tsx';
import type { Session, SessionKind } from './session-store.ts';
import { type FoundTicket, sessionIn, takeTicket } from './ticket.ts';

const SwitchDialog = lazyPart(() =>
  import('./switch-dialog.tsx').then((module) => module.SwitchDialog),
);

const PATHS: Record<SessionKind, string> = { user: '/api/auth', portal: '/portal/auth' };

/**
 * Exchanges the ticket in the address for a session before the page is shown. Replaces the session of another account
 * or provider only after a confirmation, because an attacker could send a link to the attacker's account.
 */
export function TicketExchange({ children }: { children: ReactNode }) {
  const [found] = useState(removeTicket);
  return found === null ? children : <Exchange found={found}>{children}</Exchange>;
}

function Exchange({ found, children }: { found: FoundTicket; children: ReactNode }) {
  const { kind, ticket } = found;
  const { open } = useClient(kind);
  const { session, start } = useSession(kind);
  const [isPending, setIsPending] = useState(true);
  const [error, setError] = useState<unknown>(null);
  const [offered, setOffered] = useState<Session | null>(null);
  // Once: a ticket is valid for one exchange. `start` changes with each render.
  const [exchange] = useState(() => async () => {
    const response = await open(`${PATHS[kind]}/exchange-ticket`, {
      method: 'POST',
      // A rejected ticket must not end the session that the browser has.
      credentials: 'omit',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ticket }),
    });
    const next = sessionIn(kind, await response.json());
    if (next === null) throw failureFrom(response.status, null, null);
    if (session === null || session.name === next.name) start(next);
    else setOffered(next);
  });
  const [close] = useState(() => () => setError(null));
  useTicketNotice(error, close);
  useEffect(() => {
    exchange()
      .catch(setError)
      .finally(() => setIsPending(false));
  }, [exchange]);
  function stay({ token }: Session): void {
    setOffered(null);
    const headers = { Authorization: `Bearer ${token}` };
    open(`${PATHS[kind]}/logout`, { method: 'POST', credentials: 'omit', headers }).catch(setError);
  }
  if (isPending) return <Loading />;
  return (
    <>
      {offered === null ? null : (
        <Suspense>
          <SwitchDialog
            present={session?.name ?? ''}
            offered={offered.name}
            onSwitch={() => {
              start(offered);
              setOffered(null);
            }}
            onStay={() => stay(offered)}
          />
        </Suspense>
      )}
      {children}
    </>
  );
}

/** Shows why a ticket failed in the page that opens instead, until a log-in or until the reader closes it. */
function useTicketNotice(error: unknown, close: () => void): void {
  const { session: user } = useSession('user');
  const { session: provider } = useSession('portal');
  const sessions = `${user?.token} ${provider?.token}`;
  const [first] = useState(sessions);
  const isShown = error !== null && sessions === first;
  const notice = useMemo(
    () => (isShown ? <TicketNotice error={error} onClose={close} /> : null),
    [isShown, error, close],
  );
  usePageNotice('ticket', notice);
}

function TicketNotice({ error, onClose }: { error: unknown; onClose: () => void }) {
  return (
    <>
      <FailureNotice error={error} />
      <button type="button" onClick={onClose}>
        Close the message
      </button>
    </>
  );
}

/** Removes the ticket from the address bar and the history before it is sent. */
function removeTicket(): FoundTicket | null {
  const taken = takeTicket(window.location.hash);
  if (taken === null) return null;
  const { pathname, search } = window.location;
  window.history.replaceState(null, '', pathname + search + taken.rest);
  return taken;
}
