import type { Verification } from '../api/portal.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { CommandBlock } from '../parts/command-block.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { wordsOf } from '../parts/format.ts';
import { Panel, QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { usePortal } from '../session/queries.tsx';
import { FirstSteps } from './first-steps.tsx';
import type { NodeTabProps } from './node-page.tsx';
import { type Check, checkEffect, checkTone, occupancyOf, sortChecks } from './node-state.ts';

const REFETCH_MS = 10_000;

/** Shows the reasons that prevent rentals, and all checks. */
export function NodeOverview({ node }: NodeTabProps) {
  const { id, location } = node;
  const verification = usePortal(
    'GET /executors/{id}/verification',
    { params: { id } },
    { refetchMs: REFETCH_MS },
  );
  const isNew = node.validator_hotkey === null;
  const place = [location?.city, location?.region_name, location?.country]
    .filter((part) => part !== null && part !== undefined)
    .join(', ');
  return (
    <>
      {isNew ? <FirstSteps id={id} /> : null}
      <QueryPanel
        title="Why it cannot be rented"
        query={verification}
        isEmpty={({ data }) => data.blocking_reasons.length === 0}
        empty={isNew ? 'The first check decides.' : 'Nothing prevents rentals of this node.'}
      >
        {({ data }) => <Reasons reasons={data.blocking_reasons} />}
      </QueryPanel>
      <QueryPanel
        title="Checks"
        query={verification}
        isEmpty={({ data }) => data.checked_at === null}
        empty="No validator has checked the node yet."
      >
        {({ data }) => <Checks verification={data} />}
      </QueryPanel>
      <Panel title="Node">
        <Facts
          facts={[
            ['GPUs', `${node.gpu_count} × ${node.gpu_type}`],
            ['Occupancy', occupancyOf(node)],
            ['Price', <Money key="price" usd={node.price_per_gpu} per="GPU and hour" />],
            ['Smallest rental', smallestRental(node.min_gpu_count_for_rental)],
            ['Agent', `${node.executor_ip_address} port ${node.executor_ip_port}`],
            ['Place', place === '' ? 'not entered' : `${place} (${node.location_check})`],
            ['Added', <Time key="added" value={node.created_at} />],
            ['Id', <code key="id">{id}</code>],
          ]}
        />
      </Panel>
    </>
  );
}

function smallestRental(minimum: number | null): string {
  return minimum === null ? 'the whole node' : `${minimum} GPU${minimum === 1 ? '' : 's'}`;
}

function Reasons({ reasons }: { reasons: Verification['blocking_reasons'] }) {
  return (
    <ul className="plain reasons">
      {reasons.map((reason) => (
        <li key={reason.code + reason.kind} className="notice bad">
          <p>
            <strong>{reason.message}</strong> <code>{reason.code}</code>
          </p>
          <p>
            Measured: {reason.measured}. Required: {reason.required}.
          </p>
          <p>{reason.fix}</p>
          <Commands check={reason} />
          {reason.requires === null ? null : (
            <p className="small">The command requires: {reason.requires}.</p>
          )}
          {reason.docs_url === null ? null : (
            <a href={reason.docs_url} rel="noreferrer" target="_blank">
              Documentation of this check
            </a>
          )}
        </li>
      ))}
    </ul>
  );
}

function Commands({ check }: { check: Pick<Check, 'fix_command' | 'verify_command'> }) {
  const { fix_command: fix, verify_command: verify } = check;
  return (
    <>
      {fix === null ? null : <CommandBlock label="Fix it, on the host" command={fix} />}
      {verify === null ? null : <CommandBlock label="Test it, on the host" command={verify} />}
    </>
  );
}

function Checks({ verification }: { verification: Verification }) {
  const {
    checks,
    checked_at: at,
    validator_hotkey: hotkey,
    blocking_reasons: reasons,
  } = verification;
  const blocking = new Set(reasons.map(({ kind }) => kind));
  const columns: readonly Column<Check>[] = [
    {
      key: 'name',
      title: 'Check',
      cell: ({ name, message }) => (
        <>
          {wordsOf(name)}
          <div className="small faint">{message}</div>
        </>
      ),
    },
    {
      key: 'result',
      title: 'Result',
      cell: (check) => <Status name={check.passed ? 'passed' : 'failed'} tone={checkTone(check)} />,
    },
    { key: 'measured', title: 'Measured', cell: ({ measured }) => measured },
    { key: 'required', title: 'Required', cell: ({ required }) => required },
    {
      key: 'effect',
      title: 'Effect on rentals and weight',
      cell: (check) => checkEffect(check, blocking.has(check.name)),
    },
    {
      key: 'remedy',
      title: 'Remedy',
      cell: (check) =>
        check.passed ? (
          '–'
        ) : (
          <>
            {check.fix}
            <Commands check={check} />
          </>
        ),
    },
  ];
  return (
    <>
      <p>
        Checked <Time value={at} relative /> (<Time value={at} />) by validator{' '}
        <code className="small">{hotkey}</code>. The validator repeats the checks of a node that
        passes once per check interval, which is 15 minutes by default, and of a node that fails
        after seconds to ten minutes.
      </p>
      {checks.length === 0 ? (
        <p className="empty">The validator has reported its verdict without single checks.</p>
      ) : (
        <DataTable
          caption="Checks of the last verdict"
          columns={columns}
          rows={sortChecks(checks)}
          rowKey={({ name }) => name}
        />
      )}
    </>
  );
}
