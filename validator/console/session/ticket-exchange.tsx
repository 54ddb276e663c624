import { type ReactNode, useEffect, useState } from 'react';
import { failureFrom } from '../api/failure.ts';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { Loading } from '../parts/panel.tsx';
import { useClient, useSession } from './session.tsx';
import { takeTicket } from './ticket.ts';

/** Exchanges the ticket in the address for a session before the page is shown. */
export function TicketExchange({ children }: { children: ReactNode }) {
  const { open } = useClient();
  const { start } = useSession();
  const [ticket] = useState(removeTicket);
  const [isPending, setIsPending] = useState(ticket !== null);
  const [error, setError] = useState<unknown>(null);
  // Once: a ticket is valid for one exchange. `start` changes with each render.
  const [exchange] = useState(() => async (code: string) => {
    const response = await open('/api/auth/exchange-ticket', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ticket: code }),
    });
    const body: unknown = await response.json();
    if (!isLogIn(body)) throw failureFrom(response.status, null, null);
    start({ token: body.token, name: body.user.email });
  });
  useEffect(() => {
    if (ticket === null) return;
    exchange(ticket)
      .catch(setError)
      .finally(() => setIsPending(false));
  }, [ticket, exchange]);
  if (isPending) return <Loading />;
  return (
    <>
      {error === null ? null : <FailureNotice error={error} />}
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
