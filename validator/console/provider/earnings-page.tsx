import { Link } from 'wouter';
import type { BillingRow, NodeEarnings } from '../api/portal.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { formatDuration } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import type { Tone } from '../parts/tone.ts';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { usePortal } from '../session/queries.tsx';

const PAGE_SIZE = 100;
const FIRST_PAGE = { page: 1 };
/** Page of the list of nodes. */
const FIRST_NODES = { nodes: 1 };
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
  { key: 'node', title: 'Node', cell: ({ executor_id: id }) => <NodeLink id={id} /> },
  { key: 'type', title: 'GPU', cell: ({ gpu_type: type }) => type },
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
    cell: ({ gross_usd: usd }) => <Money usd={usd} />,
  },
  { key: 'fee', title: 'Fee', isNumber: true, cell: ({ fee_usd: usd }) => <Money usd={usd} /> },
  { key: 'net', title: 'Earned', isNumber: true, cell: ({ net_usd: usd }) => <Money usd={usd} /> },
];

/** The provider's earnings: their sum, by node, and one row per pod and day with its payout. */
export function EarningsPage() {
  return (
    <Page title="Earnings">
      <ByNode />
      <Statement />
    </Page>
  );
}

const NO_ROWS = 'You have not earned anything yet. Earnings begin with the first rental of a node.';

function ByNode() {
  const [{ nodes: page }, change] = useUrlState(FIRST_NODES);
  const nodes = usePortal('GET /billing/nodes', { query: { page, limit: PAGE_SIZE } });
  return (
    <QueryPanel
      title="Since the first rental"
      query={nodes}
      isEmpty={({ total }) => total === 0}
      empty={NO_ROWS}
    >
      {({ data, sum, total, pagination }) => (
        <>
          <Facts
            facts={[
              ['Earned', <Money key="net" usd={sum.net_usd} />],
              ['Renters paid', <Money key="gross" usd={sum.gross_usd} />],
              ['Fee', <Money key="fee" usd={sum.fee_usd} />],
              ['Rented', formatDuration(sum.seconds * 1_000)],
            ]}
          />
          <p className="hint">Use is added once an hour, so the newest use is missing.</p>
          <DataTable
            caption="Earnings by node"
            columns={SUM_COLUMNS}
            rows={data}
            rowKey={({ executor_id: id }) => id}
          />
          <Pager
            page={page}
            hasNext={page < pagination.total_pages}
            total={total}
            onPage={(next) => change({ nodes: next })}
          />
        </>
      )}
    </QueryPanel>
  );
}

function Statement() {
  const [{ page }, change] = useUrlState(FIRST_PAGE);
  const rows = usePortal('GET /billing', { query: { page, limit: PAGE_SIZE } });
  return (
    <QueryPanel title="Statement" query={rows} isEmpty={({ total }) => total === 0} empty={NO_ROWS}>
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
  );
}
