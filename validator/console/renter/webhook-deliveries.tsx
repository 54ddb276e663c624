import type { WebhookDelivery } from '../api/api.gen.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { oneOf } from '../parts/url-state.ts';
import { useUrlState } from '../parts/use-url-state.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { DELIVERY_TONES } from './webhook.ts';

const REFETCH_MS = 5_000;
const PAGE_SIZE = 50;
const STATES = ['waiting', 'delivered', 'failed'] as const;
const DEFAULTS = { state: '', page: 1 };
const CHECKS = { state: oneOf(STATES) };

/** The deliveries of a webhook, newest first. */
export function WebhookDeliveries({ id }: { id: string }) {
  const [chosen, change] = useUrlState(DEFAULTS, CHECKS);
  const state = STATES.find((name) => name === chosen.state);
  const { page } = chosen;
  const query = { page, limit: PAGE_SIZE, ...(state === undefined ? {} : { state }) };
  const request = { params: { id }, query };
  const deliveries = useApi('GET /webhooks/{id}/deliveries', request, { refetchMs: REFETCH_MS });
  return (
    <QueryPanel
      title="Deliveries"
      query={deliveries}
      actions={
        <label className="row">
          State
          <select value={state ?? ''} onChange={({ target }) => change({ state: target.value })}>
            <option value="">all</option>
            {STATES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      }
      isEmpty={({ length }) => length === 0 && page === 1}
      empty={
        state === undefined
          ? 'Nothing was sent yet. The next event of your account is sent to the address.'
          : `No delivery is ${state}.`
      }
    >
      {(rows) => (
        <>
          <DataTable
            caption="Deliveries"
            rows={rows}
            rowKey={(row) => row.id}
            columns={columnsOf(id)}
          />
          <Pager
            page={page}
            hasNext={rows.length === PAGE_SIZE}
            onPage={(next) => change({ page: next })}
          />
        </>
      )}
    </QueryPanel>
  );
}

const columnsOf = (webhookId: string): readonly Column<WebhookDelivery>[] => [
  {
    key: 'type',
    title: 'Event',
    cell: ({ type, event_id: event }) => (
      <>
        {type}
        <div className="small faint">{event}</div>
      </>
    ),
  },
  {
    key: 'state',
    title: 'State',
    cell: ({ state, error }) => (
      <>
        <Status name={state} tone={DELIVERY_TONES[state]} />
        {error === null ? null : <div className="small">{error}</div>}
      </>
    ),
  },
  {
    key: 'answer',
    title: 'Answer',
    cell: ({ status, duration_ms: ms }) => `${status ?? 'none'} in ${ms} ms`,
  },
  { key: 'attempts', title: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
  { key: 'at', title: 'Last attempt', cell: ({ updated_at: at }) => <Time value={at} /> },
  {
    key: 'actions',
    title: 'Actions',
    cell: (delivery) => <ReplayButton webhookId={webhookId} delivery={delivery} />,
  },
];

function ReplayButton({ webhookId, delivery }: { webhookId: string; delivery: WebhookDelivery }) {
  const replay = useAction('POST /webhooks/{id}/deliveries/{delivery_id}/replay');
  const params = { id: webhookId, delivery_id: delivery.id };
  return <ActionButton label="Send again" run={() => replay.mutateAsync({ params })} />;
}
