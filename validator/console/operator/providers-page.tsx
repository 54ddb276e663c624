import type { OperatorProviderPage } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { formatCount } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { SearchField } from '../parts/search-field.tsx';
import { Status } from '../parts/status.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { ReasonDialog } from './reason-dialog.tsx';

type ProviderRow = OperatorProviderPage['providers'][number];

const PAGE_SIZE = 50;
const DEFAULTS = { page: 1, q: '', banned: false };

const COLUMNS: readonly Column<ProviderRow>[] = [
  {
    key: 'hotkey',
    title: 'Provider',
    cell: ({ hotkey, email }) => (
      <>
        <code>{hotkey}</code>
        {email === null ? null : <div className="small">{email}</div>}
      </>
    ),
  },
  {
    key: 'gpus',
    title: 'GPUs',
    cell: (row) => `${row.free_gpus} of ${row.gpus} free on ${formatCount(row.nodes, 'node')}`,
  },
  { key: 'unpaid', title: 'Unpaid', isNumber: true, cell: (row) => <Money usd={row.unpaid} /> },
  {
    key: 'state',
    title: 'State',
    cell: ({ banned, ban_reason: reason }) => (
      <>
        <Status name={banned ? 'Banned' : 'Active'} tone={banned ? 'bad' : 'good'} />
        {reason === null ? null : <div className="small">{reason}</div>}
      </>
    ),
  },
  { key: 'actions', title: 'Actions', cell: (row) => <BanButton provider={row} /> },
];

export function ProvidersPage() {
  const [{ page, q, banned }, change] = useUrlState(DEFAULTS);
  const providers = useApi('GET /operator/providers', {
    query: {
      page,
      limit: PAGE_SIZE,
      ...(q === '' ? {} : { q }),
      ...(banned ? { banned } : {}),
    },
  });
  return (
    <Page title="Providers">
      <QueryPanel
        title="Providers"
        query={providers}
        isEmpty={({ total }) => total === 0}
        empty="No provider matches. Remove a filter."
        actions={
          <>
            <SearchField label="Provider" value={q} onSearch={(text) => change({ q: text })} />
            <label className="row">
              <input
                type="checkbox"
                checked={banned}
                onChange={({ target }) => change({ banned: target.checked })}
              />
              Banned only
            </label>
          </>
        }
      >
        {({ providers: rows, total }) => (
          <>
            <DataTable caption="Providers" columns={COLUMNS} rows={rows} rowKey={({ id }) => id} />
            <Pager
              page={page}
              hasNext={page * PAGE_SIZE < total}
              total={total}
              onPage={(next) => change({ page: next })}
            />
          </>
        )}
      </QueryPanel>
    </Page>
  );
}

function BanButton({ provider: { hotkey, banned, nodes } }: { provider: ProviderRow }) {
  const ban = useAction('POST /operator/providers/{hotkey}/ban');
  const unban = useAction('POST /operator/providers/{hotkey}/unban');
  const params = { hotkey };
  return banned ? (
    <ReasonDialog
      key="unban"
      trigger="Unban"
      title={`Unban provider ${hotkey}?`}
      action="Unban"
      onConfirm={(reason) => unban.mutateAsync({ params, body: { reason } })}
    >
      <p>Renters can rent the provider’s {formatCount(nodes, 'node')} again.</p>
    </ReasonDialog>
  ) : (
    <ReasonDialog
      key="ban"
      trigger="Ban"
      title={`Ban provider ${hotkey}?`}
      action="Ban"
      isDangerous
      onConfirm={(reason) => ban.mutateAsync({ params, body: { reason } })}
    >
      <p>
        The market does not offer the provider’s {formatCount(nodes, 'node')} until the ban ends.
      </p>
    </ReasonDialog>
  );
}
