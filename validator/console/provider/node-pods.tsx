import type { NodePod } from '../api/portal.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { wordsOf } from '../parts/format.ts';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { usePortal } from '../session/queries.tsx';
import type { NodeTabProps } from './node-page.tsx';
import { occupancyOf } from './node-state.ts';

const PAGE_SIZE = 50;
const REFETCH_MS = 15_000;
const DEFAULTS = { page: 1 };

const COLUMNS: readonly Column<NodePod>[] = [
  { key: 'name', title: 'Pod', cell: ({ pod_name: name }) => name },
  {
    key: 'status',
    title: 'Status',
    cell: ({ status }) => <span className="status">{wordsOf(status)}</span>,
  },
  { key: 'gpus', title: 'GPUs', isNumber: true, cell: ({ gpu_count: count }) => count },
  {
    key: 'price',
    title: 'Price',
    isNumber: true,
    cell: ({ price }) => <Money usd={price} per="h" />,
  },
  { key: 'since', title: 'Since', cell: ({ created_at: at }) => <Time value={at} /> },
  {
    key: 'removal',
    title: 'Scheduled removal',
    cell: ({ removal_scheduled_at: at }) => <Time value={at} />,
  },
  {
    key: 'renter',
    title: 'Renter',
    cell: ({ renter_ref: renter }) => <code className="small">{renter}</code>,
  },
];

/** The pods of renters on a node. */
export function NodePods({ node }: NodeTabProps) {
  const [{ page }, change] = useUrlState(DEFAULTS);
  const query = { page, limit: PAGE_SIZE };
  const pods = usePortal(
    'GET /executors/{id}/pods',
    { params: { id: node.id }, query },
    { refetchMs: REFETCH_MS },
  );
  return (
    <QueryPanel
      title={`Current tenants (${occupancyOf(node)})`}
      query={pods}
      isEmpty={({ total }) => total === 0}
      empty="No pod runs on this node. Its price and place decide how soon renters choose it."
    >
      {({ data, total, pagination }) => (
        <>
          <DataTable
            caption="Pods on this node"
            columns={COLUMNS}
            rows={data}
            rowKey={({ pod_id: id }) => id}
          />
          <Pager
            page={page}
            hasNext={page < pagination.total_pages}
            total={total}
            onPage={(next) => change({ page: next })}
          />
          <p className="hint">
            A renter has the same pseudonym on all your nodes. It does not reveal the account.
          </p>
        </>
      )}
    </QueryPanel>
  );
}
