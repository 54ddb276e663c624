import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { RentBySpecResponse } from '../api/api.gen.ts';
import { failureOf } from '../api/failure.ts';
import { Money } from '../parts/amounts.tsx';
import { Facts } from '../parts/facts.tsx';
import { formatDuration } from '../parts/format.ts';
import { Panel, QueryContent, QueryPanel } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { explanationIn } from './constraints.ts';
import type { Node } from './node-cells.tsx';
import { WhyNothingFits } from './why-nothing-fits.tsx';

const SECOND_MS = 1_000;

/** Cost of the first hour on a chosen node, and the time until the pod runs. */
export function NodeCost({
  node,
  gpus,
  templateId,
}: {
  node: Node;
  gpus: number;
  templateId: string;
}) {
  const estimate = useApi(
    'GET /executors/deployment-estimate',
    { query: { template_id: templateId, executor_id: node.id } },
    { enabled: templateId !== '' },
  );
  return (
    <Panel title="Cost">
      <FirstHour usd={node.price_per_gpu * gpus}>
        {gpus} of {node.available_gpu_count} free GPUs of{' '}
        <Link href={paths.node(node.id)}>{node.huid}</Link>
      </FirstHour>
      {templateId === '' ? (
        <p className="empty">The time until the pod runs depends on the template.</p>
      ) : (
        <QueryContent query={estimate}>
          {({
            estimated_seconds: seconds,
            warning_message: warning,
            is_cached_template: cached,
          }) => (
            <p>
              The pod runs in about {formatDuration(seconds * SECOND_MS)}
              {cached ? ', because the node has the image' : ''}. {warning ?? ''}
            </p>
          )}
        </QueryContent>
      )}
    </Panel>
  );
}

type SpecCostProps = {
  dryRun: UseQueryResult<RentBySpecResponse, Error>;
  /** Why the dry run cannot be sent; null if it can. */
  obstacle: string | null;
  onRelax: (constraint: string, value: string | number | boolean) => void;
};

/** The node that a specification selects, from a dry run, or why none fits. */
export function SpecCost({ dryRun, obstacle, onRelax }: SpecCostProps) {
  const explanation =
    dryRun.error === null ? null : explanationIn(failureOf(dryRun.error).facts.details);
  if (obstacle !== null) {
    return (
      <Panel title="Cost">
        <p className="empty">{obstacle} Then the cost is shown.</p>
      </Panel>
    );
  }
  if (explanation !== null) {
    return (
      <Panel title="Cost">
        <WhyNothingFits explanation={explanation} onRelax={onRelax} />
      </Panel>
    );
  }
  return (
    <QueryPanel title="Cost" query={dryRun}>
      {({ price_per_hour: usd, selected_executor: node, candidates }) => (
        <FirstHour usd={usd}>
          <Link href={paths.node(node.id)}>{node.huid}</Link> with {node.gpu_count} ×{' '}
          {node.machine_name}, the cheapest of {candidates}
        </FirstHour>
      )}
    </QueryPanel>
  );
}

/** Cost of an hour and the funds that are left after it. */
function FirstHour({ usd, children }: { usd: number; children: ReactNode }) {
  const account = useApi('GET /users/me', {});
  return (
    <div className="cost">
      <Facts
        facts={[
          ['First hour', <Money key="hour" usd={usd} />],
          ['Node', <span key="node">{children}</span>],
        ]}
      />
      <QueryContent query={account}>
        {({ available }) => (
          <p className={available < usd ? 'warn-text' : undefined}>
            You have <Money usd={available} />.{' '}
            {available < usd ? (
              <>
                This pays for less than an hour. <Link href={paths.money}>Add funds</Link> first.
              </>
            ) : (
              <>
                After the first hour, <Money usd={available - usd} /> are left.
              </>
            )}
          </p>
        )}
      </QueryContent>
      <p className="hint">Charged per second, at least one minute.</p>
    </div>
  );
}
