import { type ComponentType, Suspense } from 'react';
import { Redirect, useParams } from 'wouter';
import type { PodDetailResponse } from '../api/api.gen.ts';
import { ErrorBoundary } from '../parts/error-boundary.tsx';
import { lazyPart } from '../parts/lazy-part.tsx';
import { LinkTabs } from '../parts/link-tabs.tsx';
import { Page } from '../parts/page.tsx';
import { Loading, QueryContent } from '../parts/panel.tsx';
import { SimulatedMark, Status } from '../parts/status.tsx';
import { type PodTab, paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { isChanging, toneOf } from './pod-actions.ts';
import { PodButtons } from './pod-buttons.tsx';
import { PodOverview } from './pod-overview.tsx';

export type PodTabProps = { pod: PodDetailResponse };

type TabEntry = { key: PodTab; title: string; content: ComponentType<PodTabProps> };

/** All tabs of a pod. A tab is loaded on demand if its `content` is a `lazyPart`. */
const TABS: readonly TabEntry[] = [
  { key: 'overview', title: 'Overview', content: PodOverview },
  {
    key: 'logs',
    title: 'Logs',
    content: lazyPart(() => import('../logs/pod-logs.tsx').then(({ PodLogs }) => PodLogs)),
  },
  {
    key: 'terminal',
    title: 'Terminal',
    content: lazyPart(() =>
      import('../terminal/pod-terminal.tsx').then(({ PodTerminal }) => PodTerminal),
    ),
  },
];

const CHANGING_MS = 2_000;
const STEADY_MS = 10_000;

/** A pod: its status and actions stay on every tab. */
export function PodPage() {
  const { id = '', tab = 'overview' } = useParams<{ id: string; tab?: string }>();
  const pod = useApi(
    'GET /pods/{id}',
    { params: { id } },
    { refetchMs: (data) => (data && isChanging(data.status) ? CHANGING_MS : STEADY_MS) },
  );
  const entry = TABS.find(({ key }) => key === tab);
  if (entry === undefined) return <Redirect to={paths.pod(id)} replace />;
  const Content = entry.content;
  return (
    <Page title={pod.data?.pod_name ?? 'Pod'}>
      <QueryContent query={pod}>
        {(data) => (
          <>
            <div className="row spread">
              <PodStatusLine pod={data} />
              <PodButtons pod={data} />
            </div>
            <LinkTabs
              label="Pod"
              current={entry.key}
              tabs={TABS.map(({ key, title }) => ({ key, title, path: paths.pod(id, key) }))}
            />
            <ErrorBoundary key={entry.key}>
              <Suspense fallback={<Loading />}>
                <Content pod={data} />
              </Suspense>
            </ErrorBoundary>
          </>
        )}
      </QueryContent>
    </Page>
  );
}

function PodStatusLine({ pod }: PodTabProps) {
  const { status, phase, message, executor } = pod;
  return (
    <div>
      <Status name={status} tone={toneOf(status)} />
      {phase === null ? null : <span className="faint"> {phase}</span>}{' '}
      {executor.simulated ? <SimulatedMark /> : null}
      {message === null ? null : <p>{message}</p>}
    </div>
  );
}
