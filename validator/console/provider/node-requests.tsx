import type { PortalNode, PortalRequest } from '../api/portal.gen.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { DataTable, Pager } from '../parts/data-table.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { usePortal, usePortalAction } from '../session/queries.tsx';
import type { NodeTabProps } from './node-page.tsx';
import { REQUEST_COLUMNS } from './request-columns.tsx';

const PAGE_SIZE = 50;
const DEFAULTS = { page: 1 };

/** Requests of renters that this node could fulfil. */
export function NodeRequests({ node }: NodeTabProps) {
  const [{ page }, change] = useUrlState(DEFAULTS);
  const query = { page, limit: PAGE_SIZE };
  const requests = usePortal('GET /executors/{id}/machine-requests', {
    params: { id: node.id },
    query,
  });
  return (
    <QueryPanel
      title="Requests that this node could fulfil"
      query={requests}
      isEmpty={({ total }) => total === 0}
      empty="No open request fits this node: its GPU, price, place and free GPUs."
    >
      {({ data, total, pagination }) => (
        <>
          <DataTable
            caption="Machine requests"
            rows={data}
            rowKey={({ id }) => id}
            columns={[
              ...REQUEST_COLUMNS,
              {
                key: 'actions',
                title: 'Actions',
                cell: (request) => <FulfilButton node={node} request={request} />,
              },
            ]}
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

function FulfilButton({ node, request }: { node: PortalNode; request: PortalRequest }) {
  const fulfil = usePortalAction('POST /executors/{id}/machine-added');
  return (
    <ConfirmDialog
      trigger="Offer this node"
      title={`Offer node ${node.huid} to the renter?`}
      action="Offer"
      onConfirm={() =>
        fulfil.mutateAsync({ params: { id: node.id }, body: { machine_request_id: request.id } })
      }
    >
      <p>
        The request counts as fulfilled and the renter is notified. It does not rent the node, and
        other renters can still rent it.
      </p>
    </ConfirmDialog>
  );
}
