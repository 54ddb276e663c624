import type { PodStatement } from '../api/api.gen.ts';
import { saveFile } from '../browser/save-file.ts';
import { StatementFacts } from '../money/statement-facts.tsx';
import { Money } from '../parts/amounts.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { formatCount, wordsOf } from '../parts/format.ts';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useApi } from '../session/queries.tsx';
import { IntervalTable } from './intervals.tsx';
import { statementCsv, statementLines } from './statement-lines.ts';
import './pod.css';

const REFETCH_MS = 30_000;

/** Statement of a pod: one line for each state and price, which opens to its metered intervals. */
export function PodCost({ pod }: PodTabProps) {
  const statement = useApi(
    'GET /pods/{id}/statement',
    { params: { id: pod.id } },
    { refetchMs: REFETCH_MS },
  );
  // The panel shows an error for an answer without lines.
  const isEmpty = (statement.data?.lines ?? []).length === 0;
  return (
    <QueryPanel
      title="Statement"
      query={statement}
      isEmpty={({ lines }) => lines.length === 0}
      empty="Nothing was charged. Charges begin when the pod runs."
      actions={
        <button
          type="button"
          disabled={isEmpty}
          onClick={() =>
            statement.data && saveFile(`statement-${pod.id}.csv`, [statementCsv(statement.data)])
          }
        >
          Download CSV
        </button>
      }
    >
      {(data) => <Statement statement={data} pod={pod} />}
    </QueryPanel>
  );
}

function Statement({ statement, pod }: PodTabProps & { statement: PodStatement }) {
  return (
    <>
      <StatementFacts statement={statement} />
      {pod.max_spend_usd === null ? null : (
        <p>
          The pod stops at a budget of <Money usd={pod.max_spend_usd} />.
        </p>
      )}
      <DataTable
        caption="Lines of the statement"
        rows={statementLines(statement.lines)}
        rowKey={({ key }) => key}
        columns={[
          { key: 'state', title: 'State', cell: ({ state }) => wordsOf(state) },
          {
            key: 'period',
            title: 'Period',
            cell: ({ from, to, intervals }) => (
              <>
                <Time value={from} /> – <Time value={to} />
                <details>
                  <summary>{formatCount(intervals.length, 'metered interval')}</summary>
                  <IntervalTable intervals={intervals} />
                </details>
              </>
            ),
          },
          { key: 'gpus', title: 'GPUs', isNumber: true, cell: ({ gpuCount }) => gpuCount },
          {
            key: 'price',
            title: 'Price per GPU',
            isNumber: true,
            cell: ({ pricePerGpu }) => <Money usd={pricePerGpu} per="h" />,
          },
          {
            key: 'amount',
            title: 'Amount',
            isNumber: true,
            cell: ({ amount }) => <Money usd={amount} isExact />,
          },
        ]}
      />
    </>
  );
}
