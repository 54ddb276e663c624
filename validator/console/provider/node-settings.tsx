import { NumberField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { formatUsd } from '../parts/format.ts';
import { Panel, QueryContent } from '../parts/panel.tsx';
import { usePortal, usePortalAction } from '../session/queries.tsx';
import { RemoveButton } from './node-buttons.tsx';
import { NodeLocationPanel } from './node-location.tsx';
import { NoticePanel } from './node-notice.tsx';
import type { NodeTabProps } from './node-page.tsx';
import { type PriceRange, priceProblem, priceRange } from './price-advice.ts';
import { PricePanels } from './price-panel.tsx';

/** Properties of a node that its provider can change. */
export function NodeSettings({ node }: NodeTabProps) {
  return (
    <>
      <PriceChange node={node} />
      <SplitForm node={node} />
      <NoticePanel node={node} />
      <NodeLocationPanel node={node} />
      <Panel title="Remove the node">
        <p>
          {node.rented
            ? 'Pods of renters run on the node. Announce its removal, and remove it after the announced time.'
            : 'The node has no pods, so you can remove it at once.'}
        </p>
        <div className="row">
          <RemoveButton node={node} />
        </div>
      </Panel>
    </>
  );
}

/** Price change with its expected effect before it is made. */
function PriceChange({ node }: NodeTabProps) {
  const config = usePortal('GET /v1/shared-config', {});
  return (
    <QueryContent query={config}>
      {(data) => <PriceForm node={node} range={priceRange(data, node.gpu_type)} />}
    </QueryContent>
  );
}

function PriceForm({ node, range }: NodeTabProps & { range: PriceRange | null }) {
  const { id, gpu_type: gpuType, gpu_count: gpuCount, price_per_gpu: current } = node;
  const update = usePortalAction('POST /executors/{id}/update-price');
  const form = useForm({ price_per_gpu: current as number | null }, ({ price_per_gpu: price }) =>
    update.mutateAsync({ params: { id }, body: { price_per_gpu: price ?? current } }),
  );
  const { price_per_gpu: price } = form.values;
  const problem = priceProblem(price, range);
  return (
    <>
      <Panel title="What if you asked another price">
        <Form form={form} action="Change the price">
          <NumberField
            form={form}
            name="price_per_gpu"
            label="Price"
            unit="USD per GPU and hour"
            min={0}
            isRequired
            hint={
              <>
                {problem === null ? null : <strong className="problem">{problem} </strong>}
                Now {formatUsd(current)}. A change is for new rentals only; running pods keep their
                price.
              </>
            }
          />
          <p role="status">{update.isSuccess ? 'The price has been changed.' : null}</p>
        </Form>
      </Panel>
      {range === null ? null : (
        <PricePanels
          gpuType={gpuType}
          gpuCount={gpuCount}
          price={problem === null ? price : current}
          range={range}
        />
      )}
    </>
  );
}

/** Allows rentals of a part of the node. */
function SplitForm({ node }: NodeTabProps) {
  const { id, gpu_count: count, min_gpu_count_for_rental: minimum } = node;
  const set = usePortalAction('POST /executors/{id}/min-gpu-count-for-rental');
  const clear = usePortalAction('DELETE /executors/{id}/min-gpu-count-for-rental');
  const form = useForm(
    { min_gpu_count_for_rental: minimum },
    ({ min_gpu_count_for_rental: chosen }) =>
      chosen === null
        ? clear.mutateAsync({ params: { id } })
        : set.mutateAsync({ params: { id }, body: { min_gpu_count_for_rental: chosen } }),
  );
  return (
    <Panel title="Rentals of a part of the node">
      <Form form={form} action="Save">
        <NumberField
          form={form}
          name="min_gpu_count_for_rental"
          label="Smallest number of GPUs of a rental"
          hint={`1 to ${count}. Empty: renters rent the whole node. A part needs a host that limits the disk of each pod.`}
          min={1}
          max={count}
          step={1}
        />
        <p role="status">{set.isSuccess || clear.isSuccess ? 'Saved.' : null}</p>
      </Form>
    </Panel>
  );
}
