import { useLocation, useSearch } from 'wouter';
import { readUrlState, type UrlValues, writeUrlState } from './url-state.ts';

/**
 * State in the query of the address. `change` replaces the given values; a change of anything except `page` returns to
 * the first page. Pass `defaults` as a constant: its types are those of the values.
 */
export function useUrlState<Values extends UrlValues>(
  defaults: Values,
): [state: Values, change: (values: Partial<Values>) => void] {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const state = readUrlState(search, defaults);
  const change = (values: Partial<Values>) => {
    const first = 'page' in defaults && !('page' in values) ? { page: defaults['page'] } : {};
    const query = writeUrlState(search, { ...state, ...first, ...values }, defaults);
    navigate(query === '' ? path : `${path}?${query}`, { replace: true });
  };
  return [state, change];
}
