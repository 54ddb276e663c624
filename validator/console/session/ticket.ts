/** The ticket of the link that `npm start` prints: `#ticket=…`. */

/** Returns the ticket of a fragment, and the fragment without it; null without a ticket. */
export function takeTicket(fragment: string): { ticket: string; rest: string } | null {
  const members = new URLSearchParams(fragment.replace(/^#/, ''));
  const ticket = members.get('ticket');
  if (ticket === null || ticket === '') return null;
  members.delete('ticket');
  const rest = members.toString();
  return { ticket, rest: rest === '' ? '' : `#${rest}` };
}
