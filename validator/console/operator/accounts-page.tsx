import { Link } from 'wouter';
import { DataTable, Pager } from '../parts/data-table.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { SearchField } from '../parts/search-field.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';

const PAGE_SIZE = 50;
const DEFAULTS = { page: 1, q: '' };

export function AccountsPage() {
  const [{ page, q }, change] = useUrlState(DEFAULTS);
  const query = { page, limit: PAGE_SIZE, ...(q === '' ? {} : { q }) };
  const accounts = useApi('GET /operator/accounts', { query });
  return (
    <Page title="Accounts">
      <QueryPanel
        title="Accounts of renters"
        query={accounts}
        isEmpty={({ total }) => total === 0}
        empty="No account matches. Search for another address, name or id."
        actions={<SearchField label="Account" value={q} onSearch={(text) => change({ q: text })} />}
      >
        {({ accounts: rows, total }) => (
          <>
            <DataTable
              caption="Accounts"
              rows={rows}
              rowKey={({ id }) => id}
              columns={[
                {
                  key: 'email',
                  title: 'Account',
                  cell: ({ id, email }) => <Link href={paths.operatorAccount(id)}>{email}</Link>,
                },
                { key: 'name', title: 'Name', cell: ({ name }) => name },
                { key: 'role', title: 'Role', cell: (row) => (row.admin ? 'operator' : 'renter') },
                {
                  key: 'created',
                  title: 'Created',
                  cell: (row) => <Time value={row.created_at} />,
                },
              ]}
            />
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
