import type { FleetPage as Fleet } from '../api/api.gen.ts';
import { NodeLink } from '../checks/verdict.tsx';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable, Pager } from '../parts/data-table.tsx';
import { formatCount, wordsOf } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { SearchField } from '../parts/search-field.tsx';
import { SimulatedMark, Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { oneOf } from '../parts/url-state.ts';
import { useUrlState } from '../parts/use-url-state.tsx';
import { useApi } from '../session/queries.tsx';
import { fleetText, type Offer, offerStatus } from './offer-status.ts';

type FleetNode = Fleet['nodes'][number];

const PAGE_SIZE = 50;
const DEFAULTS = { page: 1, q: '', offer: '', free: false, unchecked: 0 };
/** Minutes without a check. */
const UNCHECKED = [
  { minutes: 60, label: 'not for 1 h' },
  { minutes: 360, label: 'not for 6 h' },
  { minutes: 1_440, label: 'not for 1 d' },
];
const OFFERS: readonly Offer[] = [
  'rentable',
  'provider_banned',
  'node_paused_by_provider',
  'node_not_verified',
  'node_unavailable',
  'gpu_count_invalid',
  'removed',
];

const CHECKS = {
  offer: oneOf(OFFERS),
  unchecked: oneOf(['0', ...UNCHECKED.map(({ minutes }) => String(minutes))]),
};

/** All nodes with their GPU slots, and why free GPUs cannot be rented. */
export function FleetPage() {
  return (
    <Page title="Fleet">
      <Summary />
      <Nodes />
    </Page>
  );
}

function Summary() {
  const summary = useApi('GET /operator/fleet/summary', {});
  return (
    <QueryPanel title="Summary" query={summary}>
      {(data) => (
        <>
          <p>
            {fleetText(data.nodes, data.gpus, data.free_gpus)}{' '}
            <strong>
              {formatCount(data.free_not_rentable_gpus, 'free GPU')} cannot be rented.
            </strong>
          </p>
          <DataTable
            caption="Nodes by offer"
            rows={data.offers}
            rowKey={({ offer }) => offer}
            columns={[
              {
                key: 'offer',
                title: 'Offer',
                cell: ({ offer, free_gpus: free }) => <OfferStatus offer={offer} freeGpus={free} />,
              },
              { key: 'nodes', title: 'Nodes', isNumber: true, cell: ({ nodes }) => nodes },
              { key: 'gpus', title: 'GPUs', isNumber: true, cell: ({ gpus }) => gpus },
              { key: 'free', title: 'Free GPUs', isNumber: true, cell: (row) => row.free_gpus },
            ]}
          />
        </>
      )}
    </QueryPanel>
  );
}

function OfferStatus({ offer, freeGpus }: { offer: Offer; freeGpus: number }) {
  return <Status {...offerStatus(offer, freeGpus)} />;
}

const COLUMNS: readonly Column<FleetNode>[] = [
  {
    key: 'node',
    title: 'Node',
    cell: ({ id, huid, executor_ip_address: address, simulated }) => (
      <>
        <NodeLink id={id} huid={huid} /> <SimulatedMark isSimulated={simulated} />
        <div className="small">{address}</div>
      </>
    ),
  },
  {
    key: 'gpus',
    title: 'GPUs',
    cell: (row) => `${row.free_gpu_count} of ${row.gpu_count} free · ${row.machine_name}`,
  },
  {
    key: 'slots',
    title: 'Slots',
    cell: ({ slots }) => (
      <ul className="plain small">
        {slots.map(({ index, pod_id: pod }) => (
          <li key={index}>
            {index}: {pod === null ? 'free' : <code>{pod}</code>}
          </li>
        ))}
      </ul>
    ),
  },
  {
    key: 'offer',
    title: 'Offer',
    cell: ({ offer, reasons, free_gpu_count: free }) => (
      <>
        <OfferStatus offer={offer} freeGpus={free} />
        {reasons.map(({ code, message }) => (
          <div key={code} className="small">
            {message}
          </div>
        ))}
      </>
    ),
  },
  {
    key: 'price',
    title: 'Price per GPU',
    isNumber: true,
    cell: (row) => <Money usd={row.price_per_gpu} per="h" />,
  },
  { key: 'checked', title: 'Checked', cell: (row) => <Time value={row.checked_at} relative /> },
];

function Nodes() {
  const [{ page, q, offer, free, unchecked }, change] = useUrlState(DEFAULTS, CHECKS);
  const chosen = OFFERS.find((name) => name === offer);
  const fleet = useApi('GET /operator/fleet', {
    query: {
      page,
      limit: PAGE_SIZE,
      ...(q === '' ? {} : { q }),
      ...(chosen === undefined ? {} : { offer: chosen }),
      ...(free ? { free } : {}),
      ...(unchecked > 0 ? { min_check_age_minutes: unchecked } : {}),
    },
  });
  return (
    <QueryPanel
      title="Nodes"
      query={fleet}
      isEmpty={({ total }) => total === 0}
      empty="No node matches. Remove a filter."
      actions={
        <>
          <SearchField label="Node" value={q} onSearch={(text) => change({ q: text })} />
          <label className="row">
            Offer
            <select value={offer} onChange={({ target }) => change({ offer: target.value })}>
              <option value="">All</option>
              {OFFERS.map((name) => (
                <option key={name} value={name}>
                  {wordsOf(name)}
                </option>
              ))}
            </select>
          </label>
          <label className="row">
            <input
              type="checkbox"
              checked={free}
              onChange={({ target }) => change({ free: target.checked })}
            />
            With free GPUs
          </label>
          <label className="row">
            Checked
            <select
              value={unchecked}
              onChange={({ target }) => change({ unchecked: Number(target.value) })}
            >
              <option value={0}>at any time</option>
              {UNCHECKED.map(({ minutes, label }) => (
                <option key={minutes} value={minutes}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        </>
      }
    >
      {({ nodes, total }) => (
        <>
          <DataTable caption="Nodes" columns={COLUMNS} rows={nodes} rowKey={({ id }) => id} />
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
