import { CursorPager } from '../parts/cursor-pager.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { wordsOf } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { useApi } from '../session/queries.tsx';

const PAGE_SIZE = 50;
const DEFAULTS = { before: 0 };

/** Actions of operators with their reasons. */
export function AuditPage() {
  const [{ before }, change] = useUrlState(DEFAULTS);
  const query = { limit: PAGE_SIZE, ...(before === 0 ? {} : { before }) };
  const entries = useApi('GET /operator/audit', { query });
  return (
    <Page title="Audit trail">
      <QueryPanel
        title="Actions of operators, newest first"
        query={entries}
        isEmpty={({ length }) => length === 0}
        empty="No operator has changed anything yet."
      >
        {(rows) => (
          <>
            <DataTable
              caption="Actions"
              rows={rows}
              rowKey={({ seq }) => String(seq)}
              columns={[
                { key: 'action', title: 'Action', cell: ({ action }) => wordsOf(action) },
                { key: 'at', title: 'Time', cell: ({ at }) => <Time value={at} /> },
                { key: 'operator', title: 'Operator', cell: ({ operator }) => operator },
                {
                  key: 'subject',
                  title: 'Subject',
                  cell: (row) => (
                    <>
                      {wordsOf(row.subject_type)} <code>{row.subject_id}</code>
                    </>
                  ),
                },
                { key: 'reason', title: 'Reason', cell: ({ reason }) => reason },
              ]}
            />
            <CursorPager
              isFirst={before === 0}
              hasNext={rows.length === PAGE_SIZE}
              onFirst={() => change({ before: 0 })}
              onNext={() => change({ before: rows.at(-1)?.seq ?? 0 })}
            />
          </>
        )}
      </QueryPanel>
    </Page>
  );
}
