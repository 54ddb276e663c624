import { Link } from 'wouter';
import type { AccountEvent } from '../api/api.gen.ts';
import { wordsOf } from '../parts/format.ts';
import type { TimelineEntry } from '../parts/timeline.tsx';
import { paths } from '../paths.ts';
import { toneOfEvent } from './event-tone.ts';
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
  const { id, created_at: at, sub_event_type: type, from_status: from, to_status: to } = event;
  return {
    key: id,
    at,
    tone: toneOfEvent(type),
    title: wordsOf(type),
    detail: (
      <>
        {to === null ? null : (
          <div className="small">
            {from === null ? null : `${wordsOf(from)} → `}
            {wordsOf(to)}
          </div>
        )}
        <Cause event={event} />
        <div className="faint small">by {actorOf(event)}</div>
      </>
    ),
  };
}

function Cause({ event: { reason, error, detail } }: { event: AccountEvent }) {
  const remedy = remedyOf(reason);
  const text = error ?? detail;
  return (
    <>
      {reason === null ? null : (
        <div>
          {wordsOf(reason)} <code className="faint">{reason}</code>
        </div>
      )}
      {text === null ? null : <div>{text}</div>}
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
