import type { KeyboardEvent, RefObject } from 'react';
import type { UsedSearch } from './use-search.tsx';

type SearchBarProps = {
  field: RefObject<HTMLInputElement | null>;
  text: string;
  matchCase: boolean;
  onText: (text: string) => void;
  onMatchCase: (matchCase: boolean) => void;
  search: UsedSearch;
};

export function LogSearchBar(props: SearchBarProps) {
  const { field, text, matchCase, onText, onMatchCase, search } = props;
  const { count, ordinal, go, term } = search;
  const onKeyDown = ({ key, shiftKey }: KeyboardEvent) => {
    if (key === 'Enter') go(shiftKey ? -1 : 1);
    if (key === 'Escape') onText('');
  };
  return (
    <search className="row">
      <label className="row">
        Search
        <input
          ref={field}
          type="search"
          className="log-search"
          value={text}
          maxLength={1_000}
          aria-keyshortcuts="Control+F"
          onChange={({ target }) => onText(target.value)}
          onKeyDown={onKeyDown}
        />
      </label>
      <label>
        <input
          type="checkbox"
          checked={matchCase}
          onChange={({ target }) => onMatchCase(target.checked)}
        />{' '}
        Match case
      </label>
      <button type="button" disabled={count === 0} onClick={() => go(-1)}>
        Previous
      </button>
      <button type="button" disabled={count === 0} aria-keyshortcuts="F3" onClick={() => go(1)}>
        Next
      </button>
      {term === null ? null : (
        <span role="status">
          {ordinal === 0 ? '' : `${ordinal.toLocaleString('en-US')} of `}
          {count.toLocaleString('en-US')} {count === 1 ? 'line' : 'lines'}
        </span>
      )}
    </search>
  );
}
