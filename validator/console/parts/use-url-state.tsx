import { useMemo } from 'react';
import { useLocation, useSearch } from 'wouter';
import { usePageNotice } from './page-notices.tsx';
import {
  type Checks,
  ignoredIn,
  readUrlState,
  type UrlValues,
  writeUrlState,
} from './url-state.ts';

/**
 * State in the query of the address. `change` replaces the given values; a change of anything except `page` returns to
 * the first page. Pass `defaults` as a constant: its types are those of the values, and a number is at least its default.
 * `checks` reject texts. The page reports the parts of the address that are ignored.
 */
export function useUrlState<Values extends UrlValues>(
  defaults: Values,
  checks?: Checks,
): [state: Values, change: (values: Partial<Values>) => void] {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const state = readUrlState(search, defaults, checks);
  useIgnoredNotice(ignoredIn(search, defaults, checks).join('; '));
  const change = (values: Partial<Values>) => {
    const first = 'page' in defaults && !('page' in values) ? { page: defaults['page'] } : {};
    const query = writeUrlState(search, { ...state, ...first, ...values }, defaults);
    navigate(query === '' ? path : `${path}?${query}`, { replace: true });
  };
  return [state, change];
}

function useIgnoredNotice(parts: string): void {
  const notice = useMemo(
    () =>
      parts === '' ? null : (
        <p className="notice" role="status">
          This page ignores a part of its address: <code>{parts}</code>.
        </p>
      ),
    [parts],
  );
  usePageNotice(parts, notice);
}
