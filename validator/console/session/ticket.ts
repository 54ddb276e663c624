/** Tickets in links: `#ticket=…` of an account, as in the link that `npm start` prints, `#portal-ticket=…` of a provider. */
import type { Session, SessionKind } from './session-store.ts';

const MEMBERS = [
  ['ticket', 'user'],
  ['portal-ticket', 'portal'],
] as const satisfies readonly (readonly [string, SessionKind])[];

export type FoundTicket = { kind: SessionKind; ticket: string };

/** Returns the ticket of a fragment, and the fragment without tickets; null without a ticket. */
export function takeTicket(fragment: string): (FoundTicket & { rest: string }) | null {
  const members = new URLSearchParams(fragment.replace(/^#/, ''));
  const [found] = MEMBERS.flatMap(([name, kind]) => {
    const ticket = members.get(name);
    return ticket === null || ticket === '' ? [] : [{ kind, ticket }];
  });
  if (found === undefined) return null;
  for (const [name] of MEMBERS) members.delete(name);
  const rest = members.toString();
  return { ...found, rest: rest === '' ? '' : `#${rest}` };
}

/** Reads the answer to the exchange of a ticket; null if it is malformed. */
export function sessionIn(kind: SessionKind, answer: unknown): Session | null {
  const { token, user, data } = (answer ?? {}) as {
    token?: unknown;
    user?: { email?: unknown };
    data?: { token?: unknown; miner?: { miner_hotkey?: unknown } };
  };
  const session =
    kind === 'user'
      ? { token, name: user?.email }
      : { token: data?.token, name: data?.miner?.miner_hotkey };
  return isSession(session) ? session : null;
}

function isSession(session: { token: unknown; name: unknown }): session is Session {
  return typeof session.token === 'string' && typeof session.name === 'string';
}
