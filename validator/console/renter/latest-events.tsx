import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { AccountEvent } from '../api/api.gen.ts';
import { QueryPanel } from '../parts/panel.tsx';
import { Timeline, type TimelineEntry } from '../parts/timeline.tsx';
import { paths } from '../paths.ts';
import { toneOfEvent } from '../pod/event-tone.ts';
import { eventWords } from '../pod/event-words.ts';
import { useApi } from '../session/queries.tsx';
import { useAccountEvents } from '../session/use-account-events.tsx';

const SHOWN = 10;
const SHORT_ID = 8;

/** The latest events of the account, which arrive as they happen. An event also refreshes the lists of the page. */
export function LatestEvents() {
  const stored = useApi('GET /users/me/events', { query: { limit: SHOWN } });
  const arrived = useNewEvents();
  return (
    <QueryPanel
      title="Latest events"
      query={stored}
      isEmpty={({ length }) => length + arrived.length === 0}
      empty="Nothing has happened yet."
    >
      {(events) => <Timeline entries={merge(arrived, events).map(entryOf)} />}
    </QueryPanel>
  );
}

/** Newest first. */
function useNewEvents(): readonly AccountEvent[] {
  const queries = useQueryClient();
  const [events, setEvents] = useState<readonly AccountEvent[]>([]);
  useAccountEvents((event) => {
    setEvents((before) => [event, ...before].slice(0, SHOWN));
    void queries.invalidateQueries();
  });
  return events;
}

function merge(arrived: readonly AccountEvent[], stored: readonly AccountEvent[]): AccountEvent[] {
  const ids = new Set(arrived.map(({ id }) => id));
  return [...arrived, ...stored.filter(({ id }) => !ids.has(id))].slice(0, SHOWN);
}

function entryOf(event: AccountEvent): TimelineEntry {
  const { id, created_at: at, sub_event_type: type, pod_id: podId, pod_name: name } = event;
  const { title, reason, note } = eventWords(event);
  return {
    key: id,
    at,
    tone: toneOfEvent(type),
    title: (
      <>
        {title}
        {podId === null ? null : (
          <>
            : <Link href={paths.pod(podId)}>{name || `pod ${podId.slice(0, SHORT_ID)}`}</Link>
          </>
        )}
      </>
    ),
    detail: [reason, note].filter((text) => text !== null).join(' ') || null,
  };
}
