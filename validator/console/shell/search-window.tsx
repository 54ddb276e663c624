import { Autocomplete } from '@base-ui/react/autocomplete';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { Dialog } from '../parts/dialog.tsx';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { useSettled } from '../parts/use-settled.tsx';
import { ROUTES } from '../routes.tsx';
import { useApi } from '../session/queries.tsx';
import { useAudiences, useVisible } from './audiences.tsx';
import {
  accountEntries,
  type Found,
  firstEntries,
  pageEntries,
  podEntries,
  providerEntries,
  resultEntries,
} from './search-entries.ts';

const SETTLED_MS = 200;
/** Entries of each kind. */
const LIMIT = 8;
const MAX_ENTRIES = 40;

/** The open search: pages, and what the account and operators may see, by name, id or address. */
export function SearchWindow({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Search" isOpen onClose={onClose}>
      <SearchList onChoose={onClose} />
    </Dialog>
  );
}

function SearchList({ onChoose }: { onChoose: () => void }) {
  const [, navigate] = useLocation();
  const [text, setText] = useState('');
  const { items, error } = useFound(text);
  const open = ({ path }: Found) => {
    navigate(path);
    onChoose();
  };
  return (
    <Autocomplete.Root
      items={items}
      itemToStringValue={({ label }: Found) => label}
      filter={null}
      value={text}
      onValueChange={setText}
      inline
      open
      autoHighlight="always"
    >
      <Autocomplete.Input
        aria-label="Name, id or address"
        placeholder="Name, id or address"
        maxLength={100}
      />
      {error === null ? null : <FailureNotice error={error} />}
      <Autocomplete.Empty>
        <p className="empty">Nothing matches. Type a complete id, or part of a name.</p>
      </Autocomplete.Empty>
      <Autocomplete.List className="results">
        {(found: Found) => (
          <Autocomplete.Item key={found.key} value={found} onClick={() => open(found)}>
            {found.label}
          </Autocomplete.Item>
        )}
      </Autocomplete.List>
    </Autocomplete.Root>
  );
}

/** Searches on the server when the typing pauses. */
function useFound(text: string): { items: Found[]; error: Error | null } {
  const audiences = useAudiences();
  const pages = useVisible(ROUTES);
  const q = useSettled(text.trim(), SETTLED_MS);
  const isOperator = q !== '' && audiences.has('operator');
  const query = { q, limit: LIMIT };
  const isRenter = audiences.has('renter');
  const pods = useApi('GET /pods', {}, { enabled: isRenter });
  const results = useApi('GET /users/me/search', { query }, { enabled: q !== '' && isRenter });
  const accounts = useApi('GET /operator/accounts', { query }, { enabled: isOperator });
  const providers = useApi('GET /operator/providers', { query }, { enabled: isOperator });
  const entries = [
    ...pageEntries(pages, text),
    ...podEntries(pods.data ?? [], text),
    ...(q === '' || results.data === undefined ? [] : resultEntries(results.data)),
    ...(q === '' || accounts.data === undefined ? [] : accountEntries(accounts.data)),
    ...(q === '' || providers.data === undefined ? [] : providerEntries(providers.data)),
  ];
  return {
    items: firstEntries(entries, MAX_ENTRIES),
    error: pods.error ?? results.error ?? accounts.error ?? providers.error,
  };
}
