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

/** Name of a node, with its id on hover. */
function NodeLink({ id, huid }: { id: string; huid: string }) {
  return (
    <Link href={paths.providerNode(id)} title={id}>
      {huid}
    </Link>
  );
}

/** Part of a row that is posted; null for an amount that the row does not have. */
function postedOf(usd: number | null, unposted: number | undefined): number | null {
  return usd === null ? null : usd - (unposted ?? 0);
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
  {
    key: 'node',
    title: 'Node',
    cell: ({ executor_id: id, executor_huid: huid }) => <NodeLink id={id} huid={huid} />,
  },
  {
    key: 'gpus',
    title: 'GPUs',
    cell: ({ gpu_count: count, gpu_type: type }) => `${count} × ${type}`,
  },
  {
    key: 'seconds',
    title: 'Rented',
    isNumber: true,
    cell: ({ seconds, unposted }) => formatDuration((seconds - (unposted?.seconds ?? 0)) * 1_000),
  },
  {
    key: 'gross',
    title: 'Renter paid',
    isNumber: true,
    cell: ({ gross_usd: usd, unposted }) => (
      <Money usd={postedOf(usd, unposted?.gross_usd)} isExact />
    ),
  },
  {
    key: 'fee',
    title: 'Fee',
    isNumber: true,
    cell: ({ fee_usd: usd, unposted }) => <Money usd={postedOf(usd, unposted?.fee_usd)} isExact />,
  },
  {
    key: 'net',
    title: 'Earned',
    isNumber: true,
    cell: ({ net_usd: usd, unposted }) => <Money usd={postedOf(usd, unposted?.net_usd)} isExact />,
  },
  {
    key: 'status',
    title: 'Payout',
    cell: ({ status }) => <Status name={status} tone={TONES[status]} />,
  },
];

type Earned = Pick<NodeEarnings, 'seconds' | 'gross_usd' | 'fee_usd' | 'net_usd'>;

const EARNED_COLUMNS: readonly Column<Earned>[] = [
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
    cell: ({ gross_usd: usd }) => <Money usd={usd} isExact />,
  },
  {
    key: 'fee',
    title: 'Fee',
    isNumber: true,
    cell: ({ fee_usd: usd }) => <Money usd={usd} isExact />,
  },
  {
    key: 'net',
    title: 'Earned',
    isNumber: true,
    cell: ({ net_usd: usd }) => <Money usd={usd} isExact />,
  },
];

const TOTAL_COLUMNS: readonly Column<Earned & { name: string }>[] = [
  { key: 'name', title: 'Part', cell: ({ name }) => name },
  ...EARNED_COLUMNS,
];

const SUM_COLUMNS: readonly Column<NodeEarnings>[] = [
  {
    key: 'node',
    title: 'Node',
    cell: ({ executor_id: id, executor_huid: huid }) => <NodeLink id={id} huid={huid} />,
  },
  { key: 'type', title: 'GPU', cell: ({ gpu_type: type }) => type },
  ...EARNED_COLUMNS,
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
      isEmpty={({ total, unposted }) => total === 0 && unposted.seconds === 0}
      empty={NO_ROWS}
    >
      {({ data, sum, unposted, total, pagination }) => (
        <>
          <Facts
            facts={[
              ['Earned', <Money key="net" usd={sum.net_usd + unposted.net_usd} isExact />],
              [
                'Renters paid',
                <Money key="gross" usd={sum.gross_usd + unposted.gross_usd} isExact />,
              ],
              ['Fee', <Money key="fee" usd={sum.fee_usd + unposted.fee_usd} isExact />],
              ['Rented', formatDuration((sum.seconds + unposted.seconds) * 1_000)],
            ]}
          />
          <p className="hint">
            Use is posted once an hour. The nodes below and the statement have what is posted.
          </p>
          <DataTable
            caption="Earnings"
            columns={TOTAL_COLUMNS}
            rows={[
              { name: 'Posted', ...sum },
              { name: 'Used since the last posting', ...unposted },
            ]}
            rowKey={({ name }) => name}
          />
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
          <p className="hint">
            One row for each pod and day (UTC). Use since the last posting is not in the rows; it
            has its own line above.
          </p>
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
