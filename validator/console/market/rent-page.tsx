import { Link } from 'wouter';
import { ErrorBoundary } from '../parts/error-boundary.tsx';
import { ObjectContent } from '../parts/object-content.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import './market.css';
import type { Node } from './node-cells.tsx';
import { RentPod } from './rent-form.tsx';
import { NO_SPEC, RENT_CHECKS, type RentState } from './spec.ts';

const DEFAULTS: RentState = { ...NO_SPEC, node: '', gpu_count: '' };

/** Rents a pod: on the node of the address, or on the cheapest node that meets a specification. */
export function RentPage() {
  const [state, change] = useUrlState<RentState>(DEFAULTS, RENT_CHECKS);
  return (
    <Page title="Rent a pod" actions={<Link href={paths.market}>Choose a node in the market</Link>}>
      {state.node === '' ? (
        <RentPod node={null} state={state} onSpec={change} />
      ) : (
        <OnNode key={state.node} state={state} onSpec={change} />
      )}
    </Page>
  );
}

type OnNodeProps = { state: RentState; onSpec: (change: Partial<RentState>) => void };

function OnNode({ state, onSpec }: OnNodeProps) {
  const params = { executor_uuid: state.node };
  const node = useApi('GET /executors/{executor_uuid}', { params });
  // The form stays when a later read fails, so that typed input survives.
  if (node.data !== undefined) {
    return (
      <ErrorBoundary onRetry={() => void node.refetch()} resetKey={node.data}>
        <RentOnNode node={node.data} state={state} onSpec={onSpec} />
      </ErrorBoundary>
    );
  }
  return (
    <ObjectContent query={node} what="node" list={{ path: paths.market, title: 'the market' }}>
      <QueryPanel title="Node" query={node}>
        {(_: Node) => null}
      </QueryPanel>
    </ObjectContent>
  );
}

/** A component, so that the error boundary also catches an answer that is not the node, of which nothing could be rented. */
function RentOnNode({ node, ...rest }: OnNodeProps & { node: Node }) {
  if (node.id.toLowerCase() !== rest.state.node.toLowerCase())
    throw new TypeError('the answer is not the node');
  return <RentPod node={node} {...rest} />;
}
