import { Link } from 'wouter';
import type { AccountEvent } from '../api/api.gen.ts';
import type { TimelineEntry } from '../parts/timeline.tsx';
import { paths } from '../paths.ts';
import { toneOfEvent } from './event-tone.ts';
import { eventWords } from './event-words.ts';
import { remedyOf } from './remedies.ts';

const ACTORS: Record<AccountEvent['actor']['auth'], string> = {
  session: 'you',
  api_key: 'an API key',
  provider: 'the provider',
  validator: 'a validator',
  system: 'the marketplace',
};

/** An event of a pod with its cause, its actor and what to do about it. */
export function podEventEntry(event: AccountEvent): TimelineEntry {
  const { id, created_at: at, sub_event_type: type } = event;
  const { title, change } = eventWords(event);
  return {
    key: id,
    at,
    tone: toneOfEvent(type),
    title,
    detail: (
      <>
        {change === null ? null : <div className="small">{change}</div>}
        <Cause event={event} />
        <div className="faint small">by {actorOf(event)}</div>
      </>
    ),
  };
}

function Cause({ event }: { event: AccountEvent }) {
  const remedy = remedyOf(event.reason);
  const { reason, note } = eventWords(event);
  return (
    <>
      {reason === null ? null : <div title={event.reason ?? undefined}>{reason}</div>}
      {note === null ? null : <div>{note}</div>}
      {remedy === null ? null : <div className="small">{remedy}</div>}
    </>
  );
}

function actorOf({ actor }: AccountEvent) {
  if (actor.auth !== 'api_key') return ACTORS[actor.auth];
  return (
    <>
      API key <Link href={paths.apiKeys}>{actor.api_key_name ?? 'deleted'}</Link>
    </>
  );
}
