import type { UseQueryResult } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import type { PodHistoryResponse, PodListItemResponse } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { SimulatedMark, Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { reasonWords } from '../pod/event-words.ts';
import { useApi } from '../session/queries.tsx';
import { idsOf, withLeaving } from './leaving-pods.ts';
import { isChanging, phaseBeside, toneOf } from './pod-actions.ts';
import { PodButtons } from './pod-buttons.tsx';

const CHANGING_MS = 2_000;
const STEADY_MS = 15_000;
const PAGE_SIZE = 50;
const DEFAULTS = { page: 1, favorites: false };

const COLUMNS: readonly Column<PodListItemResponse>[] = [
  {
    key: 'name',
    title: 'Pod',
    cell: ({ id, pod_name: name, is_favorite: isFavorite }) => (
      <>
        <Link href={paths.pod(id)}>{name}</Link>
        {isFavorite ? <span title="Favorite"> ★</span> : null}
      </>
    ),
  },
  {
    key: 'status',
    title: 'Status',
    cell: ({ status, phase, message }) => (
      <>
        <Status name={status} tone={toneOf(status)} />
        <span className="faint"> {phaseBeside({ status, phase })}</span>
        {message === null ? null : <div className="small">{message}</div>}
      </>
    ),
  },
  {
    key: 'gpus',
    title: 'GPUs',
    cell: ({ gpu_count: count, gpu_name: name, executor }) => (
      <>
        {count === '0' ? 'none' : `${count} × ${name}`}{' '}
        <SimulatedMark isSimulated={executor.simulated} />
      </>
    ),
  },
  {
    key: 'price',
    title: 'Price',
    isNumber: true,
    cell: ({ price }) => <Money usd={price} per="h" />,
  },
  {
    key: 'spent',
    title: 'Spent',
    isNumber: true,
    cell: ({ spent_usd: spent }) => <Money usd={spent} />,
  },
  { key: 'age', title: 'Rented', cell: ({ created_at: at }) => <Time value={at} relative /> },
  { key: 'actions', title: 'Actions', cell: (pod) => <PodButtons pod={pod} /> },
];

export function PodsPage() {
  const [{ favorites }] = useUrlState(DEFAULTS);
  return (
    <Page title="Pods" actions={<Link href={paths.market}>Rent a pod</Link>}>
      <Lists key={String(favorites)} isFavorites={favorites} />
    </Page>
  );
}

/** The live and the deleted pods. A pod moves from one list to the other, and is always in one of them. */
function Lists({ isFavorites }: { isFavorites: boolean }) {
  const [{ page }, change] = useUrlState(DEFAULTS);
  // A pod that is being deleted stays in the first list until its node has removed it.
  const query = { include_deleting: true, ...(isFavorites ? { only_favorites: true } : {}) };
  const pods = useApi(
    'GET /pods',
    { query },
    {
      refetchMs: (rows) =>
        rows?.some(({ status }) => isChanging(status)) ? CHANGING_MS : STEADY_MS,
    },
  );
  const history = useApi(
    'GET /pods/history',
    { query: { page, limit: PAGE_SIZE } },
    { refetchMs: STEADY_MS },
  );
  const left = useLeft(pods, history.refetch);
  return (
    <>
      <QueryPanel
        title="Running and stopped pods"
        query={pods}
        actions={
          <label className="row">
            <input
              type="checkbox"
              checked={isFavorites}
              onChange={({ target }) => change({ favorites: target.checked })}
            />
            Favorites only
          </label>
        }
      >
        {(rows) => <LivePods rows={withLeaving(rows, left, history.data?.items ?? [])} />}
      </QueryPanel>
      <DeletedPods history={history} page={page} onPage={(next) => change({ page: next })} />
    </>
  );
}

type Reading = Pick<UseQueryResult<PodListItemResponse[], Error>, 'data'>;
type Rows = readonly PodListItemResponse[];

/**
 * Returns the pods that the list had before, until the list of deleted pods has been read again after a change. A pod
 * that has left the first list is then in the second one.
 */
function useLeft({ data }: Reading, readHistory: () => Promise<unknown>): Rows {
  const [settled, setSettled] = useState<{ ids: string; rows: Rows } | null>(null);
  const ids = idsOf(data);
  const isFirst = settled === null;
  const isSettled = settled?.ids === ids;
  useEffect(() => {
    if (isSettled || !Array.isArray(data)) return;
    let isOutdated = false;
    void (isFirst ? Promise.resolve() : readHistory()).then(() => {
      if (!isOutdated) setSettled({ ids, rows: data });
    });
    return () => {
      isOutdated = true;
    };
  }, [isFirst, isSettled, ids, data, readHistory]);
  return isSettled || settled === null ? [] : settled.rows;
}

function LivePods({ rows }: { rows: Rows }) {
  if (rows.length === 0) {
    return (
      <p className="empty">
        You have no pods. <Link href={paths.market}>Choose a node</Link> to rent one.
      </p>
    );
  }
  return <DataTable caption="Pods" columns={COLUMNS} rows={rows} rowKey={({ id }) => id} />;
}

type DeletedPodsProps = {
  history: UseQueryResult<PodHistoryResponse, Error>;
  page: number;
  onPage: (page: number) => void;
};

function DeletedPods({ history, page, onPage }: DeletedPodsProps) {
  return (
    <QueryPanel
      title="Deleted pods"
      query={history}
      isEmpty={({ total }) => total === 0}
      empty="No pod has been deleted."
    >
      {({ items, total, has_next: hasNext }) => (
        <>
          <DataTable
            caption="Deleted pods"
            rows={items}
            rowKey={({ id }) => id}
            columns={[
              {
                key: 'name',
                title: 'Pod',
                cell: ({ id, pod_name: name }) => <Link href={paths.pod(id)}>{name}</Link>,
              },
              { key: 'deleted', title: 'Deleted', cell: (pod) => <Time value={pod.deleted_at} /> },
              {
                key: 'reason',
                title: 'Reason',
                cell: ({ reason_code: reason }) => (reason === null ? '–' : reasonWords(reason)),
              },
              {
                key: 'spent',
                title: 'Cost',
                isNumber: true,
                cell: ({ spent_usd: spent }) => <Money usd={spent} />,
              },
            ]}
          />
          <Pager page={page} hasNext={hasNext} total={total} onPage={onPage} />
        </>
      )}
    </QueryPanel>
  );
}
