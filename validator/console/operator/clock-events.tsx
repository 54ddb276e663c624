import { NodeLink } from '../checks/verdict.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useLocal } from '../session/queries.tsx';
import { eventWords, type MarketEvent } from './event-words.ts';

const REFETCH_MS = 2_000;
const SHOWN = 30;
const SHORT_ID = 8;

const COLUMNS: readonly Column<MarketEvent>[] = [
  { key: 'kind', title: 'Event', cell: (event) => eventWords(event).title },
  { key: 'at', title: 'Time', cell: ({ at }) => <Time value={at} /> },
  {
    key: 'node',
    title: 'Node',
    cell: ({ executor_huid: huid, details: { executor } }) =>
      typeof executor === 'string' ? <NodeLink id={executor} huid={huid} /> : '–',
  },
  {
    key: 'details',
    title: 'Details',
    cell: (event) => (
      <>
        {eventWords(event).facts.join(' · ')} <PodId id={event.details['pod']} />
      </>
    ),
  },
];

/** The latest rentals, faults, prices and failed checks. */
export function EventPanel() {
  const events = useLocal('GET /_local/events', { refetchMs: REFETCH_MS });
  return (
    <QueryPanel
      title="Latest events"
      query={events}
      isEmpty={({ events: found }) => found.length === 0}
      empty="Nothing has happened yet. Advance the clock."
    >
      {({ events: found }) => (
        <DataTable
          caption="Latest events"
          columns={COLUMNS}
          rows={found.slice(0, SHOWN)}
          rowKey={({ number }) => String(number)}
        />
      )}
    </QueryPanel>
  );
}

/** Short id of a pod, with the whole id on hover. Pods of the modelled renters have no page here. */
function PodId({ id }: { id: MarketEvent['details'][string] | undefined }) {
  if (typeof id !== 'string') return null;
  return (
    <span className="faint small" title={id}>
      pod {id.slice(0, SHORT_ID)}
    </span>
  );
}
