import { Link } from 'wouter';
import { Facts } from '../parts/facts.tsx';
import { formatBytes, formatCount } from '../parts/format.ts';
import { Panel, QueryPanel } from '../parts/panel.tsx';
import { SimulatedMark } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { type Node, NodePlace, NodePrice, Reliability } from './node-cells.tsx';

type ComparisonProps = { ids: readonly string[]; onRemove: (id: string) => void };

/** Up to four nodes side by side. Each is read alone, so that a node that left the market affects only its part. */
export function Comparison({ ids, onRemove }: ComparisonProps) {
  if (ids.length === 0) return null;
  return (
    <Panel title="Comparison">
      <div className="comparison">
        {ids.map((id) => (
          <ComparedNode key={id} id={id} onRemove={() => onRemove(id)} />
        ))}
      </div>
    </Panel>
  );
}

function ComparedNode({ id, onRemove }: { id: string; onRemove: () => void }) {
  const node = useApi('GET /executors/{executor_uuid}', { params: { executor_uuid: id } });
  const name = node.data?.huid ?? `Node ${id.slice(0, 8)}`;
  return (
    <QueryPanel
      title={name}
      query={node}
      actions={
        <button type="button" aria-label={`Remove ${name} from the comparison`} onClick={onRemove}>
          Remove
        </button>
      }
    >
      {(data) => (
        <>
          <NodeFacts node={data} />
          <Link href={paths.rentNode(id)}>Rent {data.huid}</Link>
        </>
      )}
    </QueryPanel>
  );
}

const KIB = 1_024;
const MIB = 1_048_576;

/** Properties of a node in a fixed order, so that nodes can be compared. */
export function NodeFacts({ node }: { node: Node }) {
  const { specs } = node;
  const [gpu] = specs?.gpu.details ?? [];
  const size = (count: number | undefined, unit: number) =>
    count === undefined ? '–' : formatBytes(count * unit);
  return (
    <Facts
      facts={[
        [
          'GPUs',
          <span key="gpus">
            {node.available_gpu_count} of {node.gpu_count} × {node.machine_name} free{' '}
            <SimulatedMark isSimulated={node.simulated} />
          </span>,
        ],
        ['Price', <NodePrice key="price" node={node} />],
        ['Smallest rental', formatCount(node.min_gpu_count_for_rental ?? node.gpu_count, 'GPU')],
        ['Memory of each GPU', size(gpu?.capacity, MIB)],
        ['Processors', specs === undefined ? '–' : `${specs.cpu.count} × ${specs.cpu.model}`],
        ['Memory', size(specs?.ram.total, KIB)],
        ['Free disk', size(specs?.hard_disk.free, KIB)],
        ['Download', speedOf(node.effective_download_speed_mbps)],
        ['Upload', speedOf(node.effective_upload_speed_mbps)],
        ['Connection of the GPUs', node.interconnect ?? '–'],
        ['Driver', node.driver_version ?? '–'],
        ['CUDA, at most', String(node.max_cuda_version ?? '–')],
        ['Location', <NodePlace key="place" node={node} />],
        ['Reliability', <Reliability key="reliability" score={node.reliability_score} />],
        ['Last check', <Time key="checked" value={node.last_checked_at} relative />],
        ['Collateral', node.collateral_deposited ? 'deposited' : 'none'],
      ]}
    />
  );
}

function speedOf(mbps: number | null): string {
  return mbps === null ? 'not measured' : `${Math.round(mbps)} Mbit/s`;
}
