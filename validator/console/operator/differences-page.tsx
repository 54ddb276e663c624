import type { DriftList, UnknownPodList } from '../api/api.gen.ts';
import { NodeLink } from '../checks/verdict.tsx';
import { CursorPager } from '../parts/cursor-pager.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { formatCount } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { ReasonDialog } from './reason-dialog.tsx';

type UnknownPod = UnknownPodList['pods'][number];
type Difference = DriftList['entries'][number];

const PAGE_SIZE = 50;
const REFETCH_MS = 10_000;
const FIRST_PAGE = { page: 1 };
const NEWEST = { before: 0 };

/** Differences between the pods on the nodes and the pods in the database. */
export function DifferencesPage() {
  return (
    <Page title="Differences" lead="Pods on the nodes, compared with the pods in the database.">
      <UnknownPods />
      <Corrected />
    </Page>
  );
}

const UNKNOWN_COLUMNS: readonly Column<UnknownPod>[] = [
  { key: 'pod', title: 'Pod', cell: ({ pod_id: id }) => <code>{id}</code> },
  {
    key: 'node',
    title: 'Node',
    cell: ({ executor_id: id, executor_huid: huid }) => <NodeLink id={id} huid={huid} />,
  },
  {
    key: 'kind',
    title: 'Difference',
    cell: ({ kind, generation }) =>
      kind === 'missing'
        ? 'The database has no such pod on the node.'
        : `The node has generation ${generation}; the database has an older one.`,
  },
  {
    key: 'content',
    title: 'Content',
    cell: ({ image, gpu_count: count }) => `${image} · ${formatCount(count, 'GPU')}`,
  },
  { key: 'created', title: 'Created', cell: ({ created_at: at }) => <Time value={at} /> },
  { key: 'found', title: 'Found', cell: ({ found_at: at }) => <Time value={at} relative /> },
  { key: 'actions', title: 'Decision', cell: (pod) => <Decision pod={pod} /> },
];

function UnknownPods() {
  const [{ page }, change] = useUrlState(FIRST_PAGE);
  const query = { page, limit: PAGE_SIZE };
  const unknown = useApi('GET /operator/unknown-pods', { query }, { refetchMs: REFETCH_MS });
  return (
    <QueryPanel
      title="Unknown pods"
      query={unknown}
      isEmpty={({ total }) => total === 0}
      empty="The database has all pods of the nodes. Nothing is to decide."
    >
      {({ pods, total }) => (
        <>
          <p>
            The database is an old copy, or a node reports pods that the marketplace did not start.
            A node with an unknown pod receives no new rentals until you decide.
          </p>
          <DataTable
            caption="Unknown pods"
            columns={UNKNOWN_COLUMNS}
            rows={pods}
            rowKey={({ executor_id: node, pod_id: pod }) => `${node} ${pod}`}
          />
          <Pager
            page={page}
            hasNext={page * PAGE_SIZE < total}
            total={total}
            onPage={(next) => change({ page: next })}
          />
        </>
      )}
    </QueryPanel>
  );
}

function Decision({ pod }: { pod: UnknownPod }) {
  const { executor_id: id, pod_id: podId, kind, remove_requested_at: removedAt } = pod;
  const adopt = useAction('POST /operator/executors/{id}/unknown-pods/{pod_id}/adopt');
  const remove = useAction('POST /operator/executors/{id}/unknown-pods/{pod_id}/remove');
  const params = { id, pod_id: podId };
  if (removedAt !== null) {
    return (
      <>
        The node was requested to remove it <Time value={removedAt} relative />.
      </>
    );
  }
  return (
    <div className="row">
      {kind === 'newer' ? (
        <ReasonDialog
          trigger="Adopt"
          title={`Adopt pod ${podId}?`}
          action="Adopt"
          onConfirm={(reason) => adopt.mutateAsync({ params, body: { reason } })}
        >
          <p>
            The pod runs on and is charged. Its next change replaces its container according to the
            database.
          </p>
        </ReasonDialog>
      ) : (
        <span className="small faint">
          It cannot be adopted, because the database has neither its account nor its price.
        </span>
      )}
      <ReasonDialog
        trigger="Remove"
        title={`Remove pod ${podId} with its data?`}
        action="Remove"
        isDangerous
        onConfirm={(reason) => remove.mutateAsync({ params, body: { reason } })}
      >
        <p>The node deletes the pod with its data. The data cannot be recovered.</p>
      </ReasonDialog>
    </div>
  );
}

const KINDS: Record<Difference['kind'], string> = {
  pod_lost: 'The node had lost the pod, and received it again.',
  pod_left: 'The node still ran an ended pod, and was requested to remove it.',
  pod_unknown: 'The node runs a pod that the database does not have.',
};

const DIFFERENCE_COLUMNS: readonly Column<Difference>[] = [
  { key: 'kind', title: 'Difference', cell: ({ kind }) => KINDS[kind] },
  { key: 'at', title: 'Found', cell: ({ at }) => <Time value={at} /> },
  {
    key: 'node',
    title: 'Node',
    cell: ({ executor_id: id, executor_huid: huid }) => <NodeLink id={id} huid={huid} />,
  },
  { key: 'pod', title: 'Pod', cell: ({ pod_id: id }) => <code>{id}</code> },
  {
    key: 'state',
    title: 'State',
    cell: ({ corrected }) => (
      <Status
        name={corrected ? 'corrected' : 'needs a decision'}
        tone={corrected ? 'good' : 'warn'}
      />
    ),
  },
];

function Corrected() {
  const [{ before }, change] = useUrlState(NEWEST);
  const query = { limit: PAGE_SIZE, ...(before === 0 ? {} : { before }) };
  const drift = useApi('GET /operator/drift', { query });
  return (
    <QueryPanel
      title="Found differences, newest first"
      query={drift}
      isEmpty={({ entries }) => entries.length === 0}
      empty="The sync has found no difference."
    >
      {({ entries, last_day: lastDay, next }) => (
        <>
          <p>
            In the last 24 hours:{' '}
            {lastDay.length === 0
              ? 'none.'
              : lastDay.map(({ kind, count }) => `${KINDS[kind]} ${count}×`).join(' ')}
          </p>
          <DataTable
            caption="Found differences"
            columns={DIFFERENCE_COLUMNS}
            rows={entries}
            rowKey={({ seq }) => String(seq)}
          />
          <CursorPager
            isFirst={before === 0}
            hasNext={next !== null}
            onFirst={() => change({ before: 0 })}
            onNext={() => change({ before: next ?? 0 })}
          />
        </>
      )}
    </QueryPanel>
  );
}
