import { type ReactNode, Suspense, useEffect, useState } from 'react';
import { failureFrom } from '../api/failure.ts';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { lazyPart } from '../parts/lazy-part.tsx';
import { Loading } from '../parts/panel.tsx';
import { useClient, useSession } from './session.tsx';
import type { Session } from './session-store.ts';
import { takeTicket } from './ticket.ts';

const SwitchDialog = lazyPart(() =>
  import('./switch-dialog.tsx').then((module) => module.SwitchDialog),
);

/**
 * Exchanges the ticket in the address for a session before the page is shown. Replaces the session of another account
 * only after a confirmation, because an attacker could send a link to the attacker's account.
 */
export function TicketExchange({ children }: { children: ReactNode }) {
  const { open } = useClient();
  const { session, start } = useSession();
  const [ticket] = useState(removeTicket);
  const [isPending, setIsPending] = useState(ticket !== null);
  const [error, setError] = useState<unknown>(null);
  const [offered, setOffered] = useState<Session | null>(null);
  // Once: a ticket is valid for one exchange. `start` changes with each render.
  const [exchange] = useState(() => async (code: string) => {
    const response = await open('/api/auth/exchange-ticket', {
      method: 'POST',
      // A rejected ticket must not end the session that the browser has.
      credentials: 'omit',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ticket: code }),
    });
    const body: unknown = await response.json();
    if (!isLogIn(body)) throw failureFrom(response.status, null, null);
    const next = { token: body.token, name: body.user.email };
    if (session === null || session.name === next.name) start(next);
    else setOffered(next);
  });
  useEffect(() => {
    if (ticket === null) return;
    exchange(ticket)
      .catch(setError)
      .finally(() => setIsPending(false));
  }, [ticket, exchange]);
  function stay({ token }: Session): void {
    setOffered(null);
    const headers = { Authorization: `Bearer ${token}` };
    open('/api/auth/logout', { method: 'POST', credentials: 'omit', headers }).catch(setError);
  }
  if (isPending) return <Loading />;
  return (
    <>
      {error === null ? null : <FailureNotice error={error} />}
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

/** Removes the ticket from the address bar and the history before it is sent. */
function removeTicket(): string | null {
  const taken = takeTicket(window.location.hash);
  if (taken === null) return null;
  const { pathname, search } = window.location;
  window.history.replaceState(null, '', pathname + search + taken.rest);
  return taken.ticket;
}

function isLogIn(body: unknown): body is { token: string; user: { email: string } } {
  const { token, user } = body as { token?: unknown; user?: { email?: unknown } };
  return typeof token === 'string' && typeof user?.email === 'string';
}
