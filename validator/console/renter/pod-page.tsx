import { type ComponentType, Suspense } from 'react';
import { Redirect, useParams } from 'wouter';
import type { PodDetailResponse } from '../api/api.gen.ts';
import { ErrorBoundary } from '../parts/error-boundary.tsx';
import { lazyPage } from '../parts/lazy-part.tsx';
import { LinkTabs } from '../parts/link-tabs.tsx';
import { ObjectContent } from '../parts/object-content.tsx';
import { Page } from '../parts/page.tsx';
import { Loading, QueryContent } from '../parts/panel.tsx';
import { type PodTab, paths } from '../paths.ts';
import { PodOverview } from '../pod/overview.tsx';
import { PodStatusLine } from '../pod/status-line.tsx';
import { useApi } from '../session/queries.tsx';
import { isChanging } from './pod-actions.ts';
import { PodButtons } from './pod-buttons.tsx';

export type PodTabProps = { pod: PodDetailResponse };

type TabEntry = { key: PodTab; title: string; content: ComponentType<PodTabProps> };

/** All tabs of a pod. A tab is loaded on demand if its `content` is a `lazyPage`. */
const TABS: readonly TabEntry[] = [
  { key: 'overview', title: 'Overview', content: PodOverview },
  {
    key: 'logs',
    title: 'Logs',
    content: lazyPage(() => import('../logs/pod-logs.tsx').then(({ PodLogs }) => PodLogs)),
  },
  {
    key: 'terminal',
    title: 'Terminal',
    content: lazyPage(() =>
      import('../terminal/pod-terminal.tsx').then(({ PodTerminal }) => PodTerminal),
    ),
  },
  {
    key: 'metrics',
    title: 'Metrics',
    content: lazyPage(() => import('../pod/metrics.tsx').then(({ PodMetrics }) => PodMetrics)),
  },
  {
    key: 'backups',
    title: 'Backups',
    content: lazyPage(() => import('../pod/backups.tsx').then(({ PodBackups }) => PodBackups)),
  },
  {
    key: 'events',
    title: 'Events',
    content: lazyPage(() => import('../pod/events.tsx').then(({ PodEvents }) => PodEvents)),
  },
  {
    key: 'cost',
    title: 'Cost',
    content: lazyPage(() => import('../pod/cost.tsx').then(({ PodCost }) => PodCost)),
  },
  {
    key: 'settings',
    title: 'Settings',
    content: lazyPage(() => import('../pod/settings.tsx').then(({ PodSettings }) => PodSettings)),
  },
];

const CHANGING_MS = 2_000;
const STEADY_MS = 10_000;

/** A pod: its status and actions stay on every tab. */
export function PodPage() {
  const { id = '', tab = 'overview' } = useParams<{ id: string; tab?: string }>();
  const pod = useApi(
    'GET /pods/{id}',
    // A deleted pod keeps its page, with its metrics, backups, events and statement.
    { params: { id }, query: { include_deleted: true } },
    { refetchMs: (data) => (data && isChanging(data.status) ? CHANGING_MS : STEADY_MS) },
  );
  const entry = TABS.find(({ key }) => key === tab);
  if (entry === undefined) return <Redirect to={paths.pod(id)} replace />;
  const Content = entry.content;
  return (
    <Page title={pod.data?.pod_name ?? 'Pod'}>
      <ObjectContent query={pod} what="pod" list={{ path: paths.pods, title: 'your pods' }}>
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
      </ObjectContent>
    </Page>
  );
}
