import { Link, Redirect } from 'wouter';
import type { PortalNode } from '../api/portal.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { usePortal } from '../session/queries.tsx';
import { PauseButton } from './node-buttons.tsx';
import { nodeTone, occupancyOf } from './node-state.ts';
import { NoticeText } from './notice-text.tsx';

const REFETCH_MS = 15_000;
const PAGE_SIZE = 50;
const DEFAULTS = { page: 1 };

const COLUMNS: readonly Column<PortalNode>[] = [
  {
    key: 'name',
    title: 'Node',
    cell: ({ id, huid }) => <Link href={paths.providerNode(id)}>{huid}</Link>,
  },
  {
    key: 'status',
    title: 'State',
    cell: ({ status, blocking_reasons: [reason, ...others], notice_period: notice }) => (
      <>
        <Status name={status} tone={nodeTone(status)} />
        {reason === undefined ? null : (
          <div className="small">
            {reason.message}
            {others.length === 0 ? null : ` (and ${others.length} more)`}
          </div>
        )}
        {notice === null ? null : (
          <div className="small">
            <NoticeText notice={notice} />
          </div>
        )}
      </>
    ),
  },
  {
    key: 'gpus',
    title: 'GPUs',
    cell: ({ gpu_count: count, gpu_type: type }) => `${count} × ${type}`,
  },
  { key: 'occupancy', title: 'Occupancy', cell: occupancyOf },
  {
    key: 'price',
    title: 'Price',
    isNumber: true,
    cell: ({ price_per_gpu: price }) => <Money usd={price} per="GPU h" />,
  },
  {
    key: 'address',
    title: 'Agent',
    cell: ({ executor_ip_address: address, executor_ip_port: port }) => (
      <code>{address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`}</code>
    ),
  },
  { key: 'actions', title: 'Actions', cell: (node) => <PauseButton node={node} /> },
];

/** The provider's nodes. */
export function NodesPage() {
  const [{ page }, change] = useUrlState(DEFAULTS);
  const query = { page, limit: PAGE_SIZE };
  const nodes = usePortal('GET /executors', { query }, { refetchMs: REFETCH_MS });
  return (
    <Page title="Nodes" actions={<Link href={paths.addNode}>Add a node</Link>}>
      <QueryPanel
        title="Your nodes"
        query={nodes}
        isEmpty={({ total }) => total === 0}
        empty={
          <p>
            You offer no nodes. <Link href={paths.addNode}>Add a node</Link> to rent out its GPUs.
          </p>
        }
      >
        {({ data, total, pagination }) => (
          <>
            <DataTable caption="Your nodes" columns={COLUMNS} rows={data} rowKey={({ id }) => id} />
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

/** The first page of providers. */
export function ProviderHome() {
  return <Redirect to={paths.providerNodes} replace />;
}
