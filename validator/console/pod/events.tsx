import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Pager } from '../parts/data-table.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Timeline } from '../parts/timeline.tsx';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useApi } from '../session/queries.tsx';
import { useAccountEvents } from '../session/use-account-events.tsx';
import { podEventEntry } from './pod-event.tsx';

const PAGE_SIZE = 50;

/** All events of a pod, newest first. The first page shows new events as they happen. */
export function PodEvents({ pod }: PodTabProps) {
  const queries = useQueryClient();
  useAccountEvents((event) => {
    if (event.pod_id === pod.id) void queries.invalidateQueries();
  });
  // Last event of each page before the present one.
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const before = cursors.at(-1);
  // One more than a page, which shows whether another page follows.
  const events = useApi('GET /pods/{id}/events', {
    params: { id: pod.id },
    query: { limit: PAGE_SIZE + 1, before },
  });
  return (
    <QueryPanel
      title="Events"
      query={events}
      isEmpty={({ length }) => length === 0 && cursors.length === 0}
      empty="Nothing has happened yet. Events appear while the pod starts."
    >
      {(rows) => {
        const newest = rows.toReversed();
        const shown = newest.slice(0, PAGE_SIZE);
        const page = cursors.length + 1;
        const last = shown.at(-1)?.id;
        return (
          <>
            <Timeline entries={shown.map(podEventEntry)} />
            <Pager
              page={page}
              hasNext={newest.length > PAGE_SIZE && last !== undefined}
              onPage={(next) =>
                setCursors((known) =>
                  next < page ? known.slice(0, -1) : [...known, ...(last ? [last] : [])],
                )
              }
            />
          </>
        );
      }}
    </QueryPanel>
  );
}
