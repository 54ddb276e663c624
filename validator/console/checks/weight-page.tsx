import { Link, useParams } from 'wouter';
import type { WeightExplanation } from '../api/api.gen.ts';
import { DataTable } from '../parts/data-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { wordsOf } from '../parts/format.ts';
import { ObjectContent } from '../parts/object-content.tsx';
import { Page } from '../parts/page.tsx';
import { Panel, QueryContent } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { NodeLink } from './verdict.tsx';

/** Answers why a node has its weight in an epoch. */
export function WeightPage() {
  const { number = '', id = '' } = useParams<{ number: string; id: string }>();
  const explanation = useApi('GET /operator/validator/epochs/{number}/executors/{id}', {
    params: { number: Number(number), id },
  });
  return (
    <Page
      title="Why this weight"
      lead={<code>{id}</code>}
      actions={<Link href={paths.validatorEpoch(Number(number))}>Epoch {number}</Link>}
    >
      <ObjectContent
        query={explanation}
        what="weight"
        list={{ path: paths.validatorEpochs, title: 'the epochs' }}
      >
        <QueryContent query={explanation}>{(data) => <Explanation data={data} />}</QueryContent>
      </ObjectContent>
    </Page>
  );
}

const percent = (share: number) => `${(share * 100).toFixed(2)} %`;

function Explanation({ data }: { data: WeightExplanation }) {
  return (
    <>
      <Panel title="Weight">
        {data.is_complete ? null : (
          <p className="notice">
            A cycle of this epoch was deleted, so that these figures may differ from those of the
            epoch.
          </p>
        )}
        <Facts
          facts={[
            ['Weight of the provider', data.weight],
            ['Provider', <code key="hotkey">{data.hotkey}</code>],
            ['UID', data.uid ?? 'not registered'],
            ['Nodes of the provider', data.executors_of_hotkey],
            ['Node', <NodeLink key="node" id={data.executor_id} />],
            [
              'Measured',
              `in ${data.cycles_measured} of ${data.cycles_of_window} cycles, last ${data.cycles_since_measured} cycles ago`,
            ],
            [
              'Evidence',
              <Link key="evidence" href={paths.evidence(data.evidence_id)}>
                Document of the last measurement
              </Link>,
            ],
            ...data.pools.map(
              (pool) =>
                [
                  `${wordsOf(pool.pool)} pool`,
                  `${pool.points} points: ${percent(pool.share)} of the pool, which has ${percent(pool.pool_share)} of all weight`,
                ] as const,
            ),
          ]}
        />
      </Panel>
      <Panel title="Factors of the points">
        <DataTable
          caption="Factors"
          rows={data.factors}
          rowKey={({ factor }) => factor}
          columns={[
            { key: 'factor', title: 'Factor', cell: ({ factor }) => wordsOf(factor) },
            { key: 'value', title: 'Value', isNumber: true, cell: factorValue },
            { key: 'text', title: 'Based on', cell: ({ text }) => text.replace(FACTOR, '') },
          ]}
        />
      </Panel>
      <Sentences
        title="Why it earned nothing"
        sentences={data.obstacles}
        empty="Nothing prevented the node from earning in the last measured cycle."
      />
      <Sentences
        title="What would raise the weight"
        sentences={data.improvements}
        empty="No known change of the node would raise the weight."
      />
    </>
  );
}

/** A text begins with the factor, which has its own column. */
const FACTOR = /^x [\d.]+ /;
const ONE_PPM = 1_000_000;

/** Factors are millionths, except the unit price and the eligibility. */
function factorValue({ factor, value }: WeightExplanation['factors'][number]): string {
  if (factor === 'eligible') return value === 1 ? 'yes' : 'no';
  if (factor === 'unit') return `$${(value / ONE_PPM).toFixed(4)} / h`;
  return `× ${(value / ONE_PPM).toFixed(4)}`;
}

function Sentences(props: { title: string; sentences: readonly string[]; empty: string }) {
  const { title, sentences, empty } = props;
  return (
    <Panel title={title}>
      {sentences.length === 0 ? (
        <p className="empty">{empty}</p>
      ) : (
        <ul>
          {sentences.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
