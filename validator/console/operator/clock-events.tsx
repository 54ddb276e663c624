import type { EventList } from '../api/local-operations.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { wordsOf } from '../parts/format.ts';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useLocal } from '../session/queries.tsx';

type MarketEvent = EventList['events'][number];

const REFETCH_MS = 2_000;
const SHOWN = 30;

const COLUMNS: readonly Column<MarketEvent>[] = [
  { key: 'kind', title: 'Event', cell: ({ kind }) => wordsOf(kind) },
  { key: 'at', title: 'Time', cell: ({ at }) => <Time value={at} /> },
  { key: 'details', title: 'Details', cell: ({ details }) => detailsOf(details) },
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

function detailsOf(details: MarketEvent['details']): string {
  return Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${wordsOf(name)}: ${value}`)
    .join(' · ');
}
