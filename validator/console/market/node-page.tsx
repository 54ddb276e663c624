import { Link, useParams } from 'wouter';
import type { ReliabilityResponse } from '../api/api.gen.ts';
import { Facts } from '../parts/facts.tsx';
import { formatBytes, formatCount, formatDuration } from '../parts/format.ts';
import { ObjectContent } from '../parts/object-content.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { NodeFacts } from './comparison.tsx';
import { BookmarkButton } from './node-cells.tsx';
import { PriceRanges } from './price-ranges.tsx';

const MINUTE_MS = 60_000;
const REFETCH_MS = 15_000;

/** A node of the market: hardware, price, reliability, present use, and why it cannot be rented. */
export function NodePage() {
  const { id = '' } = useParams();
  const params = { executor_uuid: id };
  const node = useApi('GET /executors/{executor_uuid}', { params }, { refetchMs: REFETCH_MS });
  const rentability = useApi('GET /executors/{executor_uuid}/rentability', { params });
  const reliability = useApi('GET /executors/{executor_uuid}/reliability', { params });
  const name = node.data?.huid ?? 'Node';
  return (
    <Page
      title={name}
      actions={
        <>
          <Link href={paths.market}>Market</Link>
          {node.data === undefined ? null : <BookmarkButton node={node.data} />}
        </>
      }
    >
      <ObjectContent query={node} what="node" list={{ path: paths.market, title: 'the market' }}>
        <QueryPanel title="Can be rented" query={rentability}>
          {({ rentable, reasons, free_gpu_count: free, min_gpu_count: least }) =>
            rentable ? (
              <p className="row">
                <Status name="rentable" tone="good" />
                <span>
                  {formatCount(free, 'GPU')} {free === 1 ? 'is' : 'are'} free; a rental has at least{' '}
                  {least}.
                </span>
                <Link href={paths.rentNode(id)}>Rent {name}</Link>
              </p>
            ) : (
              <ul>
                {reasons.map(({ code, message }) => (
                  <li key={code}>
                    {message} <code>{code}</code>
                  </li>
                ))}
              </ul>
            )
          }
        </QueryPanel>
        <QueryPanel title="Node" query={node}>
          {(data) => <NodeFacts node={data} />}
        </QueryPanel>
        <QueryPanel title="Reliability" query={reliability}>
          {(figures) => <ReliabilityFacts figures={figures} />}
        </QueryPanel>
        <PresentUse id={id} />
        {node.data === undefined ? null : <PriceRanges machine={node.data.machine_name} />}
      </ObjectContent>
    </Page>
  );
}

function ReliabilityFacts({ figures }: { figures: ReliabilityResponse }) {
  const percent = (part: number | null) => (part === null ? '–' : `${(part * 100).toFixed(1)} %`);
  const minutes = (count: number) => formatDuration(count * MINUTE_MS);
  return (
    <>
      <p className="hint">
        The score is availability × launch rate × continuity over {figures.window_days} days. It
        needs one day of observations.
      </p>
      <Facts
        facts={[
          ['Score', percent(figures.reliability_score)],
          ['Availability', percent(figures.availability)],
          ['Launch rate', percent(figures.launch_rate)],
          ['Continuity', percent(figures.continuity)],
          ['Observed', minutes(figures.observed_minutes)],
          ['Reachable', minutes(figures.reachable_minutes)],
          ['Rented', minutes(figures.rented_minutes)],
          [
            'Launches',
            `${figures.launches_succeeded} succeeded, ${figures.launches_failed} failed`,
          ],
          ['Interruptions', figures.interruptions],
        ]}
      />
    </>
  );
}

function PresentUse({ id }: { id: string }) {
  const use = useApi(
    'GET /executors/{executor_uuid}/hardware-utilization',
    { params: { executor_uuid: id } },
    { refetchMs: REFETCH_MS },
  );
  return (
    <QueryPanel title="Present use" query={use}>
      {({ timestamp, stale, cpu, network }) => (
        <>
          <Facts
            facts={[
              ['Measured', <Time key="at" value={timestamp} relative />],
              ['Processors', `${Math.round(cpu.utilization)} % of ${cpu.count}`],
              ['Receives', `${formatBytes(network.rx_bytes_per_second)}/s`],
              ['Sends', `${formatBytes(network.tx_bytes_per_second)}/s`],
            ]}
          />
          {stale ? (
            <p className="warn-text">The node does not answer; the values are old.</p>
          ) : null}
        </>
      )}
    </QueryPanel>
  );
}
