import { Link, useLocation, useParams } from 'wouter';
import type { EpochWeights } from '../api/api.gen.ts';
import { CursorPager } from '../parts/cursor-pager.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { ObjectContent } from '../parts/object-content.tsx';
import { Page } from '../parts/page.tsx';
import { Panel, QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { proveEpoch } from './proof.ts';
import { ProofPanel } from './proof-panel.tsx';

const PAGE_SIZE = 50;
const EPOCHS = { before: 0 };
const STATES = { queued: 'busy', confirmed: 'good', differs: 'bad', refused: 'bad' } as const;

export function EpochsPage() {
  const [{ before }, change] = useUrlState(EPOCHS);
  const query = { limit: PAGE_SIZE, ...(before === 0 ? {} : { before }) };
  const epochs = useApi('GET /operator/validator/epochs', { query });
  return (
    <Page title="Epochs" lead="For each epoch, the validator computes, signs and posts weights.">
      <QueryPanel
        title="Epochs, newest first"
        query={epochs}
        isEmpty={(data) => data.epochs.length === 0}
        empty="No weights have been computed yet. The first epoch ends some cycles after the start."
      >
        {(data) => (
          <>
            <DataTable
              caption="Epochs"
              rows={data.epochs}
              rowKey={({ number }) => String(number)}
              columns={[
                {
                  key: 'number',
                  title: 'Epoch',
                  cell: ({ number }) => <Link href={paths.validatorEpoch(number)}>{number}</Link>,
                },
                {
                  key: 'computed',
                  title: 'Computed',
                  cell: (row) => <Time value={row.computed_at} />,
                },
                {
                  key: 'state',
                  title: 'Published',
                  cell: ({ state }) => <Status name={state} tone={STATES[state]} />,
                },
              ]}
            />
            <CursorPager
              isFirst={before === 0}
              hasNext={data.next !== null}
              onFirst={() => change({ before: 0 })}
              onNext={() => change({ before: data.next ?? 0 })}
            />
          </>
        )}
      </QueryPanel>
    </Page>
  );
}

/** An epoch: its signature, its weights and their difference from the previous epoch. */
export function EpochPage() {
  const { number = '' } = useParams<{ number: string }>();
  const params = { number: Number(number) };
  const epoch = useApi('GET /operator/validator/epochs/{number}', { params });
  const { data } = epoch;
  return (
    <Page title={`Epoch ${number}`} actions={<Link href={paths.validatorEpochs}>All epochs</Link>}>
      <ObjectContent
        query={epoch}
        what="epoch"
        list={{ path: paths.validatorEpochs, title: 'all epochs' }}
      >
        <QueryPanel title="Record" query={epoch}>
          {(record) => (
            <Facts
              facts={[
                ['Computed', <Time key="at" value={record.computed_at} />],
                [
                  'Published',
                  <Status key="state" name={record.state} tone={STATES[record.state]} />,
                ],
                ['Cycles', record.cycles.length],
                ['Id', <code key="id">{record.id}</code>],
                [
                  'Previous epoch',
                  record.previous === null ? 'none' : <code key="previous">{record.previous}</code>,
                ],
              ]}
            />
          )}
        </QueryPanel>
        {data === undefined ? null : (
          <ProofPanel record={data} prove={(ports) => proveEpoch(data, ports)} />
        )}
        <WeightQuestion epoch={params.number} />
        <Weights epoch={params.number} />
      </ObjectContent>
    </Page>
  );
}

function WeightQuestion({ epoch }: { epoch: number }) {
  const [, navigate] = useLocation();
  const form = useForm({ id: '' }, async ({ id }) => navigate(paths.weight(epoch, id.trim())));
  return (
    <Panel title="Why does a node have its weight?">
      <Form form={form} action="Explain">
        <TextField
          form={form}
          name="id"
          label="Id of the node"
          hint="The pages of cycles list the ids of all checked nodes."
          isRequired
        />
      </Form>
    </Panel>
  );
}

const WEIGHTS = { after: -1 };

const WEIGHT_COLUMNS: readonly Column<EpochWeights['weights'][number]>[] = [
  { key: 'uid', title: 'UID', cell: ({ uid }) => uid },
  {
    key: 'hotkey',
    title: 'Provider',
    cell: ({ hotkey }) => (hotkey === null ? 'unknown' : <code>{hotkey}</code>),
  },
  { key: 'weight', title: 'Weight', isNumber: true, cell: ({ weight }) => weight },
  {
    key: 'previous',
    title: 'Previous weight',
    isNumber: true,
    cell: (row) => row.previous_weight ?? '–',
  },
  { key: 'change', title: 'Difference', isNumber: true, cell: differenceOf },
];

function differenceOf({ weight, previous_weight: previous }: EpochWeights['weights'][number]) {
  if (previous === null) return '–';
  const difference = weight - previous;
  return difference > 0 ? `+${difference}` : String(difference);
}

function Weights({ epoch }: { epoch: number }) {
  const [{ after }, change] = useUrlState(WEIGHTS);
  const weights = useApi('GET /operator/validator/epochs/{number}/weights', {
    params: { number: epoch },
    query: { limit: PAGE_SIZE, ...(after < 0 ? {} : { after }) },
  });
  return (
    <QueryPanel
      title="Weights"
      query={weights}
      isEmpty={({ total }) => total === 0}
      empty="This epoch has no weights: no provider has earned points."
    >
      {({ weights: rows, total, changed, previous_epoch: previous, next }) => (
        <>
          <p>
            {previous === null
              ? `${total} weights. The previous epoch is not stored, so there is no difference.`
              : `${total} weights, of which ${changed} differ from epoch ${previous}.`}
          </p>
          <DataTable
            caption="Weights"
            rows={rows}
            rowKey={({ uid }) => String(uid)}
            columns={WEIGHT_COLUMNS}
          />
          <CursorPager
            isFirst={after < 0}
            hasNext={next !== null}
            onFirst={() => change({ after: -1 })}
            onNext={() => change({ after: next ?? -1 })}
          />
        </>
      )}
    </QueryPanel>
  );
}
