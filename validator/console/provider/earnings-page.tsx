import { Link } from 'wouter';
import type { BillingRow } from '../api/portal.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { formatDuration } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import type { Tone } from '../parts/tone.ts';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { usePortal } from '../session/queries.tsx';
import { earningsByNode, type NodeEarnings } from './earnings.ts';

const PAGE_SIZE = 100;
const DEFAULTS = { page: 1 };
const TONES: Record<BillingRow['status'], Tone> = {
  pending: 'busy',
  paid: 'good',
  reversed: 'warn',
};

function NodeLink({ id }: { id: string }) {
  return (
    <Link href={paths.providerNode(id)}>
      <code>{id.slice(0, 8)}</code>
    </Link>
  );
}

const ROW_COLUMNS: readonly Column<BillingRow>[] = [
  {
    key: 'period',
    title: 'Period',
    cell: ({ period_start: from, period_end: to }) => (
      <>
        <Time value={from} /> to <Time value={to} />
      </>
    ),
  },
  { key: 'node', title: 'Node', cell: ({ executor_id: id }) => <NodeLink id={id} /> },
  {
    key: 'gpus',
    title: 'GPUs',
    cell: ({ gpu_count: count, gpu_type: type }) => `${count} × ${type}`,
  },
  {
    key: 'seconds',
    title: 'Rented',
    isNumber: true,
    cell: ({ seconds }) => formatDuration(seconds * 1_000),
  },
  {
    key: 'gross',
    title: 'Renter paid',
    isNumber: true,
    cell: ({ gross_usd: usd }) => <Money usd={usd} />,
  },
  { key: 'fee', title: 'Fee', isNumber: true, cell: ({ fee_usd: usd }) => <Money usd={usd} /> },
  { key: 'net', title: 'Earned', isNumber: true, cell: ({ net_usd: usd }) => <Money usd={usd} /> },
  {
    key: 'status',
    title: 'Payout',
    cell: ({ status }) => <Status name={status} tone={TONES[status]} />,
  },
];

const SUM_COLUMNS: readonly Column<NodeEarnings>[] = [
  { key: 'node', title: 'Node', cell: ({ nodeId }) => <NodeLink id={nodeId} /> },
  {
    key: 'seconds',
    title: 'Rented',
    isNumber: true,
    cell: ({ seconds }) => formatDuration(seconds * 1_000),
  },
  {
    key: 'gross',
    title: 'Renters paid',
    isNumber: true,
    cell: ({ gross }) => <Money usd={gross} />,
  },
  { key: 'fee', title: 'Fee', isNumber: true, cell: ({ fee }) => <Money usd={fee} /> },
  { key: 'net', title: 'Earned', isNumber: true, cell: ({ net }) => <Money usd={net} /> },
];

/** The provider's statement: one row per pod and day, with its payout. */
export function EarningsPage() {
  const [{ page }, change] = useUrlState(DEFAULTS);
  const rows = usePortal('GET /billing', { query: { page, limit: PAGE_SIZE } });
  const noRows =
    'You have not earned anything yet. Earnings begin with the first rental of a node.';
  return (
    <Page title="Earnings">
      <QueryPanel
        title="By node, for the rows of this page"
        query={rows}
        isEmpty={({ total }) => total === 0}
        empty={noRows}
      >
        {({ data }) => (
          <DataTable
            caption="Earnings by node"
            columns={SUM_COLUMNS}
            rows={earningsByNode(data)}
            rowKey={({ nodeId }) => nodeId}
          />
        )}
      </QueryPanel>
      <QueryPanel
        title="Statement"
        query={rows}
        isEmpty={({ total }) => total === 0}
        empty={noRows}
      >
        {({ data, total, pagination }) => (
          <>
            <DataTable
              caption="Statement"
              columns={ROW_COLUMNS}
              rows={data}
              rowKey={({ id }) => id}
            />
            <Pager
              page={page}
              hasNext={page < pagination.total_pages}
              total={total}
              onPage={(next) => change({ page: next })}
            />
          </>
        )}
      </QueryPanel>
    </Page>
  );
}
