import { Link } from 'wouter';
import type { RequestAggregate } from '../api/portal.gen.ts';
import { DataTable, Pager } from '../parts/data-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { usePortal } from '../session/queries.tsx';
import { REQUEST_COLUMNS } from './request-columns.tsx';

const PAGE_SIZE = 50;
const DEFAULTS = { page: 1 };

/** Machines that renters ask for; only counts for providers without a verified node. */
export function RequestsPage() {
  const [{ page }, change] = useUrlState(DEFAULTS);
  const requests = usePortal('GET /machine-requests', { query: { page, limit: PAGE_SIZE } });
  return (
    <Page
      title="Machine requests"
      lead="What renters ask for and do not find. The page of a node lists the requests that it could fulfil."
    >
      <QueryPanel
        title="Requests of renters"
        query={requests}
        isEmpty={(answer) => 'total' in answer && answer.total === 0}
        empty={
          <p>
            No renter has an open request. <Link href={paths.providerProfile}>Subscribe</Link> to
            get a mail for new requests.
          </p>
        }
      >
        {(answer) =>
          'total' in answer ? (
            <>
              <DataTable
                caption="Machine requests"
                columns={REQUEST_COLUMNS}
                rows={answer.data}
                rowKey={({ id }) => id}
              />
              <Pager
                page={page}
                hasNext={page < answer.pagination.total_pages}
                total={answer.total}
                onPage={(next) => change({ page: next })}
              />
            </>
          ) : (
            <Counts counts={answer.data} />
          )
        }
      </QueryPanel>
    </Page>
  );
}

function Counts({ counts }: { counts: RequestAggregate }) {
  return (
    <>
      <p>
        {counts.open_requests} open requests. Providers with a verified node see each request.{' '}
        <Link href={paths.addNode}>Add a node</Link>
      </p>
      <Facts
        facts={[
          ...counts.by_gpu_class.map(({ gpu_class: gpu, count }) => [gpu, count] as const),
          ...counts.by_hourly_budget_band.map(
            ({ band, count }) => [`Budget ${band} per GPU`, count] as const,
          ),
        ]}
      />
    </>
  );
}
