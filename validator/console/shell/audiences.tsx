import type { Audience, PageRoute } from '../routes.tsx';
import { useApi } from '../session/queries.tsx';
import { useIsSimulated, useSession } from '../session/session.tsx';

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

/** Returns the pages of the navigation and the search. */
export function useVisible(routes: readonly PageRoute[]): PageRoute[] {
  const audiences = useAudiences();
  const isSimulated = useIsSimulated();
  return routes.filter(
    ({ group, audience, isOfSimulation = false }) =>
      group !== undefined && audiences.has(audience) && (!isOfSimulation || isSimulated),
  );
}
