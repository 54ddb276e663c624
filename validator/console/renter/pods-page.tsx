import { Link } from 'wouter';
import type { PodListItemResponse } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { wordsOf } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { SimulatedMark, Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { isChanging, toneOf } from './pod-actions.ts';
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
        {phase === null || phase === 'ready' ? null : <span className="faint"> {phase}</span>}
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
  const [{ favorites }, change] = useUrlState(DEFAULTS);
  const request = favorites ? { query: { only_favorites: true } } : {};
  const pods = useApi('GET /pods', request, {
    refetchMs: (rows) => (rows?.some(({ status }) => isChanging(status)) ? CHANGING_MS : STEADY_MS),
  });
  return (
    <Page title="Pods" actions={<Link href={paths.market}>Rent a pod</Link>}>
      <QueryPanel
        title="Running and stopped pods"
        query={pods}
        isEmpty={({ length }) => length === 0}
        empty={
          <p>
            You have no pods. <Link href={paths.market}>Choose a node</Link> to rent one.
          </p>
        }
        actions={
          <label className="row">
            <input
              type="checkbox"
              checked={favorites}
              onChange={({ target }) => change({ favorites: target.checked })}
            />
            Favorites only
          </label>
        }
      >
        {(rows) => (
          <DataTable caption="Pods" columns={COLUMNS} rows={rows} rowKey={({ id }) => id} />
        )}
      </QueryPanel>
      <DeletedPods />
    </Page>
  );
}

function DeletedPods() {
  const [{ page }, change] = useUrlState(DEFAULTS);
  const query = { page, limit: PAGE_SIZE };
  // A pod arrives here when its node has removed it, seconds after the request.
  const history = useApi('GET /pods/history', { query }, { refetchMs: STEADY_MS });
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
                cell: ({ reason_code: reason }) => (reason === null ? '–' : wordsOf(reason)),
              },
              {
                key: 'spent',
                title: 'Cost',
                isNumber: true,
                cell: ({ spent_usd: spent }) => <Money usd={spent} />,
              },
            ]}
          />
          <Pager
            page={page}
            hasNext={hasNext}
            total={total}
            onPage={(next) => change({ page: next })}
          />
        </>
      )}
    </QueryPanel>
  );
}
