import type { FleetPage } from '../api/api.gen.ts';
import type { FaultList } from '../api/local-operations.ts';
import { NodeLink } from '../checks/verdict.tsx';
import { ActionButton } from '../parts/action-button.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { NumberField, type Option, SelectField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useApi, useLocal, useLocalAction } from '../session/queries.tsx';
import {
  AMOUNT_MEMBERS,
  FAULT_KINDS,
  faultRequest,
  faultWords,
  NO_FAULT,
  targetOf,
} from './fault-request.ts';

type FleetNode = FleetPage['nodes'][number];
type ActiveFault = FaultList['faults'][number];

const REFETCH_MS = 2_000;
const MAX_NODES = 100;

const COLUMNS: readonly Column<ActiveFault>[] = [
  { key: 'kind', title: 'Fault', cell: ({ kind }) => faultWords(kind) },
  {
    key: 'target',
    title: 'Target',
    cell: ({ executor_id: id, executor_huid: huid, region }) =>
      id === null ? (region ?? 'the whole marketplace') : <NodeLink id={id} huid={huid} />,
  },
  { key: 'since', title: 'Since', cell: ({ since }) => <Time value={since} /> },
  { key: 'until', title: 'Until', cell: ({ until }) => <Time value={until} /> },
  { key: 'end', title: 'End', cell: (fault) => <EndButton fault={fault} /> },
];

/** Ends a fault before its time. */
function EndButton({ fault: { number } }: { fault: ActiveFault }) {
  const end = useLocalAction('DELETE /_local/faults/{number}');
  return <ActionButton label="End now" run={() => end.mutateAsync({ params: { number } })} />;
}

/** Faults that last now. */
export function FaultPanel() {
  const faults = useLocal('GET /_local/faults', { refetchMs: REFETCH_MS });
  return (
    <QueryPanel
      title="Active faults"
      query={faults}
      isEmpty={({ faults: active }) => active.length === 0}
      empty="No fault lasts now. Begin one below, or advance the clock until the scenario has one."
    >
      {({ faults: active }) => (
        <DataTable
          caption="Active faults"
          columns={COLUMNS}
          rows={active}
          rowKey={({ number }) => String(number)}
        />
      )}
    </QueryPanel>
  );
}

/** A form that begins a fault of a host, a region or a service. */
export function FaultForm() {
  const fleet = useApi('GET /operator/fleet', { query: { limit: MAX_NODES } });
  return (
    <QueryPanel title="Begin a fault" query={fleet}>
      {({ nodes }) => <Fields nodes={nodes.map(optionOf)} />}
    </QueryPanel>
  );
}

const optionOf = ({ id, huid, machine_name: gpu, gpu_count: count }: FleetNode): Option => ({
  value: id,
  label: `${huid} · ${count} × ${gpu}`,
});

function Fields({ nodes }: { nodes: readonly Option[] }) {
  const faults = useLocal('GET /_local/faults');
  const begin = useLocalAction('POST /_local/faults');
  const form = useForm(
    NO_FAULT,
    (values) => begin.mutateAsync({ body: faultRequest(values) }),
    AMOUNT_MEMBERS,
  );
  const { target, unit } = targetOf(form.values.kind);
  const regions = (faults.data?.regions ?? []).map((name) => ({ value: name, label: name }));
  return (
    <Form form={form} action="Begin the fault">
      <SelectField form={form} name="kind" label="Fault" options={FAULT_KINDS} isRequired />
      {target === 'executor_id' ? (
        <SelectField
          form={form}
          name="executor_id"
          label="Node"
          options={withNone(nodes)}
          isRequired
        />
      ) : null}
      {target === 'region' ? (
        <SelectField
          form={form}
          name="region"
          label="Region"
          options={withNone(regions)}
          isRequired
        />
      ) : null}
      <NumberField form={form} name="amount" label={unit.label} unit={unit.name} isRequired />
    </Form>
  );
}

const withNone = (options: readonly Option[]): Option[] => [
  { value: '', label: 'Choose …' },
  ...options,
];
