import './provider.css';
import { type ComponentType, Suspense } from 'react';
import { Redirect, useParams } from 'wouter';
import type { PortalNode } from '../api/portal.gen.ts';
import { ErrorBoundary } from '../parts/error-boundary.tsx';
import { lazyPage } from '../parts/lazy-part.tsx';
import { LinkTabs } from '../parts/link-tabs.tsx';
import { ObjectContent } from '../parts/object-content.tsx';
import { Page } from '../parts/page.tsx';
import { Loading, QueryContent } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { type NodeTab, paths } from '../paths.ts';
import { usePortal } from '../session/queries.tsx';
import { PauseButton } from './node-buttons.tsx';
import { NodeOverview } from './node-overview.tsx';
import { nodeMeaning, nodeTone } from './node-state.ts';
import { NoticeText } from './notice-text.tsx';

export type NodeTabProps = { node: PortalNode };

type TabEntry = { key: NodeTab; title: string; content: ComponentType<NodeTabProps> };

const TABS: readonly TabEntry[] = [
  { key: 'overview', title: 'Verification', content: NodeOverview },
  {
    key: 'metrics',
    title: 'Metrics',
    content: lazyPage(() => import('./node-metrics.tsx').then(({ NodeMetrics }) => NodeMetrics)),
  },
  {
    key: 'pods',
    title: 'Tenants',
    content: lazyPage(() => import('./node-pods.tsx').then(({ NodePods }) => NodePods)),
  },
  {
    key: 'settings',
    title: 'Price and settings',
    content: lazyPage(() => import('./node-settings.tsx').then(({ NodeSettings }) => NodeSettings)),
  },
  {
    key: 'requests',
    title: 'Machine requests',
    content: lazyPage(() => import('./node-requests.tsx').then(({ NodeRequests }) => NodeRequests)),
  },
];

const REFETCH_MS = 10_000;

/** A node of the provider: its state stays on every tab. */
export function NodePage() {
  const { id = '', tab = 'overview' } = useParams<{ id: string; tab?: string }>();
  const node = usePortal('GET /executors/{id}', { params: { id } }, { refetchMs: REFETCH_MS });
  const entry = TABS.find(({ key }) => key === tab);
  if (entry === undefined) return <Redirect to={paths.providerNode(id)} replace />;
  const Content = entry.content;
  // A malformed answer must not break the page: the panels below report it.
  const name = node.data?.data?.huid;
  return (
    <Page title={name === undefined ? 'Node' : `Node ${name}`}>
      <ObjectContent
        query={node}
        what="node"
        list={{ path: paths.providerNodes, title: 'your nodes' }}
      >
        <QueryContent query={node}>
          {({ data }) => (
            <>
              <div className="row spread">
                <StateLine node={data} />
                <PauseButton node={data} />
              </div>
              <LinkTabs
                label="Node"
                current={entry.key}
                tabs={TABS.map(({ key, title }) => ({
                  key,
                  title,
                  path: paths.providerNode(id, key),
                }))}
              />
              <ErrorBoundary key={entry.key}>
                <Suspense fallback={<Loading />}>
                  <Content node={data} />
                </Suspense>
              </ErrorBoundary>
            </>
          )}
        </QueryContent>
      </ObjectContent>
    </Page>
  );
}

function StateLine({ node: { status, notice_period: notice } }: NodeTabProps) {
  return (
    <div>
      <Status name={status} tone={nodeTone(status)} /> {nodeMeaning(status)}
      {notice === null ? null : (
        <p>
          <NoticeText notice={notice} />
        </p>
      )}
    </div>
  );
}
