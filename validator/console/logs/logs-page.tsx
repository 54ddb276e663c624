import './logs.css';
import { useState } from 'react';
import { Link } from 'wouter';
import type { PodListItemResponse } from '../api/api.gen.ts';
import { Page } from '../parts/page.tsx';
import { Panel, QueryPanel } from '../parts/panel.tsx';
import { oneOf } from '../parts/url-state.ts';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { LogPane, type LogPod } from './log-pane.tsx';
import { LogSettingsBar, startOf, useLogSettings } from './log-settings.tsx';
import { DEFAULT_START } from './log-start.ts';
import { BadStart } from './pod-logs.tsx';
import { addPod, MAX_PODS, namesOf, podIdsIn } from './pods-of-page.ts';

const DEFAULTS = { pods: '', view: 'side' };
const CHECKS = { view: oneOf(['side', 'merged']) };

/** Logs of several pods: side by side, or in one view by time. */
export function LogsPage() {
  const [{ pods: listed, view }, change] = useUrlState(DEFAULTS, CHECKS);
  const pods = useApi('GET /pods', {});
  const [settings, changeSettings] = useLogSettings();
  const ids = podIdsIn(listed);
  const show = (next: readonly string[]) => change({ pods: next.join(',') });
  const chosen = namesOf(ids, Array.isArray(pods.data) ? pods.data : []);
  const isMerged = view === 'merged';
  return (
    <Page title="Logs" lead="Follow the logs of several pods at once.">
      <QueryPanel
        title="Pods"
        query={pods}
        isEmpty={({ length }) => length === 0}
        empty={
          <p>
            You have no pods. <Link href={paths.market}>Choose a node</Link> to rent one.
          </p>
        }
      >
        {(rows) => <PodChoice rows={rows} ids={ids} onAdd={(id) => show(addPod(ids, id))} />}
      </QueryPanel>
      {ids.length === 0 ? null : (
        <Panel
          title="View"
          actions={
            <label>
              Arrange{' '}
              <select
                value={isMerged ? 'merged' : 'side'}
                onChange={({ target }) => change({ view: target.value })}
              >
                <option value="side">Side by side</option>
                <option value="merged">Together, by time</option>
              </select>
            </label>
          }
        >
          <LogSettingsBar settings={settings} onChange={changeSettings} />
          <BadStart start={settings.start} />
        </Panel>
      )}
      {/* The names are part of the views, so these begin when the names are known. */}
      {pods.isPending ? null : (
        <Panes
          pods={chosen}
          isMerged={isMerged}
          settings={settings}
          onRemove={(id) => show(ids.filter((each) => each !== id))}
        />
      )}
    </Page>
  );
}

type PodChoiceProps = {
  rows: readonly PodListItemResponse[];
  ids: readonly string[];
  onAdd: (id: string) => void;
};

function PodChoice({ rows, ids, onAdd }: PodChoiceProps) {
  const others = rows.filter(({ id }) => !ids.includes(id));
  if (ids.length >= MAX_PODS) {
    return <p>A page shows at most {MAX_PODS} pods. Remove one before you add another.</p>;
  }
  if (others.length === 0) return <p>All your pods are shown.</p>;
  return (
    <label>
      Add a pod{' '}
      <select value="" onChange={({ target }) => onAdd(target.value)}>
        <option value="">Choose …</option>
        {others.map(({ id, pod_name: name, status }) => (
          <option key={id} value={id}>
            {name} ({status.toLowerCase()})
          </option>
        ))}
      </select>
    </label>
  );
}

type PanesProps = {
  pods: readonly LogPod[];
  isMerged: boolean;
  settings: ReturnType<typeof useLogSettings>[0];
  onRemove: (id: string) => void;
};

function Panes({ pods, isMerged, settings, onRemove }: PanesProps) {
  const [attempt, setAttempt] = useState(0);
  const start = startOf(settings.start) ?? startOf(DEFAULT_START) ?? { tail: 0 };
  const view = { start, settings, onRetry: () => setAttempt(attempt + 1) };
  const removal = (pod: LogPod) => (
    <button type="button" key={pod.id} onClick={() => onRemove(pod.id)}>
      Remove {pod.name}
    </button>
  );
  if (pods.length === 0) return null;
  if (isMerged) {
    const key = [...pods.map(({ id }) => id), settings.start, attempt].join(' ');
    return (
      <Panel title="Log by time" actions={pods.map(removal)}>
        <LogPane key={key} pods={pods} {...view} />
      </Panel>
    );
  }
  return (
    <div className="log-panes">
      {pods.map((pod) => (
        <Panel key={pod.id} title={pod.name} actions={removal(pod)}>
          <p>
            <Link href={paths.pod(pod.id, 'logs')}>Only this pod</Link>
          </p>
          <LogPane key={`${settings.start} ${attempt}`} pods={[pod]} {...view} />
        </Panel>
      ))}
    </div>
  );
}
