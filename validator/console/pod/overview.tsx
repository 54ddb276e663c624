import { Link } from 'wouter';
import { Bytes, Money } from '../parts/amounts.tsx';
import { Facts } from '../parts/facts.tsx';
import { wordsOf } from '../parts/format.ts';
import { Panel, QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { paths } from '../paths.ts';
import { isChanging } from '../renter/pod-actions.ts';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useApi } from '../session/queries.tsx';
import { Connection } from './connection.tsx';
import { podEventEntry } from './pod-event.tsx';
import { startSteps } from './start-steps.ts';
import './pod.css';

const LATEST_EVENTS = 20;
const CHANGING_MS = 2_000;
const STEADY_MS = 15_000;

/** State, start, connection and properties of a pod. */
export function PodOverview({ pod }: PodTabProps) {
  return (
    <>
      <Connection pod={pod} />
      <StartTimeline pod={pod} />
      <Properties pod={pod} />
    </>
  );
}

function StartTimeline({ pod }: PodTabProps) {
  const events = useApi(
    'GET /pods/{id}/events',
    { params: { id: pod.id }, query: { limit: LATEST_EVENTS } },
    { refetchMs: isChanging(pod.status) ? CHANGING_MS : STEADY_MS },
  );
  const steps = isChanging(pod.status) ? startSteps(pod.phase) : [];
  return (
    <QueryPanel
      title="Timeline"
      query={events}
      isEmpty={({ length }) => length === 0}
      empty="Nothing has happened yet. Events appear while the pod starts."
      actions={<Link href={paths.pod(pod.id, 'events')}>All events</Link>}
    >
      {(rows) => (
        <>
          {steps.length === 0 ? null : (
            <ol className="steps" aria-label="Steps of the start">
              {steps.map(({ phase, title, state }) => (
                <li
                  key={phase}
                  className={state}
                  aria-current={state === 'now' ? 'step' : undefined}
                >
                  <Status
                    name={title}
                    tone={state === 'done' ? 'good' : state === 'now' ? 'busy' : 'idle'}
                  />
                </li>
              ))}
            </ol>
          )}
          <Timeline entries={rows.toReversed().map(podEventEntry)} />
        </>
      )}
    </QueryPanel>
  );
}

function Properties({ pod }: PodTabProps) {
  const { executor, template, volume, notice_period: notice } = pod;
  return (
    <Panel title="Pod">
      <Facts
        facts={[
          ['GPUs', pod.gpu_count === '0' ? 'none' : `${pod.gpu_count} × ${pod.gpu_name}`],
          ['Processors', `${pod.cpu_count} × ${pod.cpu_name}`],
          ['Template', template.name],
          ['Image', `${template.docker_image}:${template.docker_image_tag}`],
          ['Node', `${executor.huid} (${executor.machine_name})`],
          ['Price', <Money key="price" usd={pod.price} per="hour" />],
          [
            'Spent',
            <span key="spent">
              <Money usd={pod.spent_usd} />{' '}
              <Link href={paths.pod(pod.id, 'cost')} className="small">
                Statement
              </Link>
            </span>,
          ],
          ['Rented', <Time key="rented" value={pod.created_at} />],
          ['Scheduled removal', <Time key="removal" value={pod.removal_scheduled_at} />],
          ['Budget', <Money key="budget" usd={pod.max_spend_usd} />],
          [
            'Stop when idle',
            pod.idle_shutdown_minutes === null ? '–' : `after ${pod.idle_shutdown_minutes} min`,
          ],
          ...(volume === null
            ? []
            : ([
                [
                  'Volume',
                  <span key="volume">
                    {volume.name}: {wordsOf(volume.status)},{' '}
                    <Bytes bytes={volume.current_size_bytes} /> of{' '}
                    <Bytes bytes={volume.size_limit_bytes} />
                  </span>,
                ],
              ] as const)),
          ...(notice === null
            ? []
            : ([
                [
                  notice.permanent_removal ? 'Node is removed' : 'Maintenance of the node',
                  <span key="notice" className="warn-text">
                    <Time value={notice.starting_at} /> {notice.reason}
                  </span>,
                ],
              ] as const)),
          ['Id', <code key="id">{pod.id}</code>],
        ]}
      />
    </Panel>
  );
}
