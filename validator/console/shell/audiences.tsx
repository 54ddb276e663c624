import type { Audience, PageRoute } from '../routes.tsx';
import { useApi } from '../session/queries.tsx';
import { useSession } from '../session/session.tsx';

/** Returns the audiences that the visitor belongs to. The server checks every request itself. */
export function useAudiences(): ReadonlySet<Audience> {
  const { session } = useSession('user');
  const { session: portal } = useSession('portal');
  const isRenter = session !== null;
  const account = useApi('GET /users/me', {}, { enabled: isRenter });
  const audiences = new Set<Audience>(['anyone']);
  if (isRenter) audiences.add('renter');
  if (isRenter && account.data?.admin === true) audiences.add('operator');
  if (portal !== null) audiences.add('provider');
  return audiences;
}

/** Pages of the navigation and the search. */
export function visibleIn(
  routes: readonly PageRoute[],
  audiences: ReadonlySet<Audience>,
): PageRoute[] {
  return routes.filter(({ group, audience }) => group !== undefined && audiences.has(audience));
}
