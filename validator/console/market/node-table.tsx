import { Link } from 'wouter';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { SimulatedMark } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { paths } from '../paths.ts';
import { MAX_COMPARED } from './filters.ts';
import { BookmarkButton, type Node, NodePlace, NodePrice, Reliability } from './node-cells.tsx';

type NodeTableProps = {
  nodes: readonly Node[];
  compared: readonly string[];
  onCompare: (id: string) => void;
};

/** One page of the nodes that can be rented. */
export function NodeTable({ nodes, compared, onCompare }: NodeTableProps) {
  const actions: Column<Node> = {
    key: 'actions',
    title: 'Actions',
    cell: (node) => (
      <div className="row">
        <Link href={paths.rentNode(node.id)} aria-label={`Rent ${node.huid}`}>
          Rent
        </Link>
        <BookmarkButton node={node} />
        <label className="row small">
          <input
            type="checkbox"
            aria-label={`Compare ${node.huid}`}
            checked={compared.includes(node.id)}
            disabled={compared.length >= MAX_COMPARED && !compared.includes(node.id)}
            onChange={() => onCompare(node.id)}
          />
          Compare
        </label>
      </div>
    ),
  };
  return (
    <>
      <DataTable
        caption="Nodes"
        columns={[...COLUMNS, actions]}
        rows={nodes}
        rowKey={({ id }) => id}
      />
      {compared.length < MAX_COMPARED ? null : (
        <p className="hint">{MAX_COMPARED} nodes can be compared. Remove one to compare another.</p>
      )}
    </>
  );
}

const COLUMNS: readonly Column<Node>[] = [
  {
    key: 'gpu',
    title: 'GPUs',
    cell: (node) => (
      <>
        <Link href={paths.node(node.id)}>
          {node.available_gpu_count} × {node.gpu_type}
        </Link>{' '}
        <SimulatedMark isSimulated={node.simulated} />
        <div className="small faint">
          {node.huid}, {node.gpu_count} in total
        </div>
      </>
    ),
  },
  { key: 'price', title: 'Total price', isNumber: true, cell: (node) => <NodePrice node={node} /> },
  { key: 'place', title: 'Location', cell: (node) => <NodePlace node={node} /> },
  {
    key: 'reliability',
    title: 'Reliability',
    cell: ({ reliability_score: score }) => <Reliability score={score} />,
  },
  {
    key: 'checked',
    title: 'Last check',
    cell: ({ last_checked_at: at }) => <Time value={at} relative />,
  },
];
