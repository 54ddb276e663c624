import { Link, useParams } from 'wouter';
import type { OperatorAccount } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { formatUsd, wordsOf } from '../parts/format.ts';
import { ObjectContent } from '../parts/object-content.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { useAction, useApi } from '../session/queries.tsx';
import { ReasonDialog } from './reason-dialog.tsx';

type AccountPod = OperatorAccount['pods'][number];

const PAGE_SIZE = 50;
const DEFAULTS = { page: 1 };

const COLUMNS: readonly Column<AccountPod>[] = [
  {
    key: 'name',
    title: 'Pod',
    cell: ({ id, pod_name: name }) => (
      <>
        {name}
        <div className="small">
          <code>{id}</code>
        </div>
      </>
    ),
  },
  {
    key: 'status',
    title: 'Status',
    cell: ({ status }) => <span className="status">{wordsOf(status)}</span>,
  },
  { key: 'charged', title: 'Charged', isNumber: true, cell: (row) => <Money usd={row.charged} /> },
  {
    key: 'refunded',
    title: 'Refunded',
    isNumber: true,
    cell: (row) => <Money usd={row.refunded} />,
  },
  { key: 'created', title: 'Rented', cell: (row) => <Time value={row.created_at} /> },
  { key: 'ended', title: 'Ended', cell: (row) => <Time value={row.ended_at} /> },
  { key: 'refund', title: 'Refund', cell: (row) => <Refund pod={row} /> },
];

/** An account of a renter, its pods, and refunds of what they were charged. */
export function AccountPage() {
  const { id = '' } = useParams<{ id: string }>();
  const [{ page }, change] = useUrlState(DEFAULTS);
  const query = { page, limit: PAGE_SIZE };
  const account = useApi('GET /operator/accounts/{id}', { params: { id }, query });
  return (
    <Page title="Account" actions={<Link href={paths.operatorAccounts}>All accounts</Link>}>
      <ObjectContent
        query={account}
        what="account"
        list={{ path: paths.operatorAccounts, title: 'all accounts' }}
      >
        <QueryPanel title="Account" query={account}>
          {({ account: user }) => (
            <Facts
              facts={[
                ['E-mail', user.email],
                ['Name', user.name],
                ['Balance', <Money key="balance" usd={user.balance} />],
                ['Reserved', <Money key="held" usd={user.held} />],
                ['Spends', <Money key="burn" usd={user.burn_per_hour} per="h" />],
                ['Created', <Time key="created" value={user.created_at} />],
              ]}
            />
          )}
        </QueryPanel>
        <QueryPanel
          title="Pods"
          query={account}
          isEmpty={({ total }) => total === 0}
          empty="This account has rented no pod, so there is nothing to refund."
        >
          {({ pods, total }) => (
            <>
              <DataTable caption="Pods" columns={COLUMNS} rows={pods} rowKey={(pod) => pod.id} />
              <Pager
                page={page}
                hasNext={page * PAGE_SIZE < total}
                total={total}
                onPage={(next) => change({ page: next })}
              />
            </>
          )}
        </QueryPanel>
      </ObjectContent>
    </Page>
  );
}

function Refund({ pod }: { pod: AccountPod }) {
  const refund = useAction('POST /operator/pods/{id}/refund');
  const { id, pod_name: name, refundable, ended_at: endedAt } = pod;
  if (endedAt === null) return <>Possible when the pod has ended.</>;
  if (refundable <= 0) return <>Nothing is left to refund.</>;
  const amount = formatUsd(refundable);
  return (
    <ReasonDialog
      trigger={`Refund ${amount}`}
      title={`Refund ${amount} of pod ${name}?`}
      action={`Refund ${amount}`}
      isDangerous
      onConfirm={(reason) =>
        refund.mutateAsync({ params: { id }, body: { amount: refundable, reason } })
      }
    >
      <p>The account receives {amount}, which is all that this pod can still be refunded.</p>
    </ReasonDialog>
  );
}
