import { Link, useParams } from 'wouter';
import { CursorPager } from '../parts/cursor-pager.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { ObjectContent } from '../parts/object-content.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { SimulatedMark } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { oneOf } from '../parts/url-state.ts';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { NodeLink, VerdictStatus } from './verdict.tsx';
import { VERDICT_NAMES, VERDICTS } from './verdicts.ts';

const PAGE_SIZE = 50;

const CYCLES = { before: 0 };

export function CyclesPage() {
  const [{ before }, change] = useUrlState(CYCLES);
  const query = { limit: PAGE_SIZE, ...(before === 0 ? {} : { before }) };
  const cycles = useApi('GET /operator/validator/cycles', { query });
  return (
    <Page title="Cycles" lead="In each cycle, the validator checks all nodes once.">
      <QueryPanel
        title="Cycles, newest first"
        query={cycles}
        isEmpty={(data) => data.cycles.length === 0}
        empty="No cycle has ended yet. The first ends when all nodes have been checked once."
      >
        {(data) => (
          <>
            <DataTable
              caption="Cycles"
              rows={data.cycles}
              rowKey={({ number }) => String(number)}
              columns={[
                {
                  key: 'number',
                  title: 'Cycle',
                  cell: ({ number }) => <Link href={paths.validatorCycle(number)}>{number}</Link>,
                },
                { key: 'ended', title: 'Ended', cell: (row) => <Time value={row.ended_at} /> },
                { key: 'passed', title: 'Passed', isNumber: true, cell: (row) => row.passed },
                { key: 'failed', title: 'Failed', isNumber: true, cell: (row) => row.failed },
                { key: 'withheld', title: 'Withheld', isNumber: true, cell: (row) => row.withheld },
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

const STATE = { verdict: '', after: '' };
const CHECKS = { verdict: oneOf(VERDICTS) };

export function CyclePage() {
  const { number = '' } = useParams<{ number: string }>();
  const [{ verdict: chosen, after }, change] = useUrlState(STATE, CHECKS);
  const verdict = VERDICTS.find((name) => name === chosen);
  const verdicts = useApi('GET /operator/validator/cycles/{number}/verdicts', {
    params: { number: Number(number) },
    query: {
      limit: PAGE_SIZE,
      ...(verdict === undefined ? {} : { verdict }),
      ...(after === '' ? {} : { after }),
    },
  });
  return (
    <Page title={`Cycle ${number}`} actions={<Link href={paths.validatorCycles}>All cycles</Link>}>
      <ObjectContent
        query={verdicts}
        what="cycle"
        list={{ path: paths.validatorCycles, title: 'all cycles' }}
      >
        <QueryPanel
          title="Verdicts"
          query={verdicts}
          isEmpty={(data) => data.verdicts.length === 0}
          empty="No node of this cycle has this verdict. Choose another verdict."
          actions={
            <label className="row">
              Verdict
              <select
                value={chosen}
                onChange={({ target }) => change({ verdict: target.value, after: '' })}
              >
                <option value="">All</option>
                {VERDICTS.map((name) => (
                  <option key={name} value={name}>
                    {VERDICT_NAMES[name]}
                  </option>
                ))}
              </select>
            </label>
          }
        >
          {(data) => (
            <>
              <DataTable
                caption="Verdicts"
                rows={data.verdicts}
                rowKey={(row) => row.executor_id}
                columns={[
                  { key: 'node', title: 'Node', cell: (row) => <NodeLink id={row.executor_id} /> },
                  {
                    key: 'verdict',
                    title: 'Verdict',
                    cell: (row) => <VerdictStatus verdict={row.verdict} />,
                  },
                  {
                    key: 'gpus',
                    title: 'GPUs',
                    cell: (row) => (
                      <>
                        {row.gpu_count} × {row.gpu_model}{' '}
                        <SimulatedMark isSimulated={row.simulated} />
                      </>
                    ),
                  },
                  { key: 'rented', title: 'Rented', cell: (row) => (row.rented ? 'yes' : 'no') },
                  {
                    key: 'failures',
                    title: 'Mean failures',
                    isNumber: true,
                    cell: (row) => `${(row.failure_ppm / 10_000).toFixed(2)} %`,
                  },
                  {
                    key: 'evidence',
                    title: 'Evidence',
                    cell: (row) => <Link href={paths.evidence(row.evidence_id)}>Open</Link>,
                  },
                ]}
              />
              <CursorPager
                isFirst={after === ''}
                hasNext={data.next !== null}
                onFirst={() => change({ after: '' })}
                onNext={() => change({ after: data.next ?? '' })}
              />
            </>
          )}
        </QueryPanel>
      </ObjectContent>
    </Page>
  );
}
