import './logs.css';
import { useState } from 'react';
import { Link } from 'wouter';
import type { PodDetailResponse } from '../api/api.gen.ts';
import { Panel } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { isDeleted } from '../renter/pod-actions.ts';
import { LogPane } from './log-pane.tsx';
import { LogSettingsBar, startOf, useLogSettings } from './log-settings.tsx';
import { DEFAULT_START } from './log-start.ts';

/** The tab of a pod with its log. */
export function PodLogs({ pod }: { pod: PodDetailResponse }) {
  const [settings, change] = useLogSettings();
  const [attempt, setAttempt] = useState(0);
  // Lines that were read before the deletion stay on the screen.
  const [hasLog] = useState(!isDeleted(pod.status));
  if (!hasLog) {
    return (
      <Panel title="Log">
        <p className="empty">
          The pod was deleted, and its log with it.{' '}
          <Link href={paths.pod(pod.id, 'events')}>Events</Link> and{' '}
          <Link href={paths.pod(pod.id, 'cost')}>cost</Link> stay.
        </p>
      </Panel>
    );
  }
  return (
    <Panel title="Log" actions={<Link href={paths.logs([pod.id])}>Beside other pods</Link>}>
      <LogSettingsBar settings={settings} onChange={change} />
      <BadStart start={settings.start} />
      <LogPane
        key={`${pod.id} ${settings.start} ${attempt}`}
        pods={[{ id: pod.id, name: pod.pod_name }]}
        start={startOf(settings.start) ?? startOf(DEFAULT_START) ?? { tail: 0 }}
        settings={settings}
        onRetry={() => setAttempt(attempt + 1)}
      />
    </Panel>
  );
}

/** For an address with a start that cannot be read. */
export function BadStart({ start }: { start: string }) {
  if (startOf(start) !== null) return null;
  return (
    <p className="notice bad" role="alert">
      The address has the start “{start}”, which is neither a number of lines nor a time. The view
      shows the last 1,000 lines. Choose another start.
    </p>
  );
}
