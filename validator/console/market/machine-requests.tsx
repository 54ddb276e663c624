import { useState } from 'react';
import { Link } from 'wouter';
import type { MachineRequest } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { NumberField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import type { Tone } from '../parts/tone.ts';
import { paths } from '../paths.ts';
import { useAction, useApi } from '../session/queries.tsx';
import { machineRequestOf, type UrlFilters } from './filters.ts';

const TONES: Record<MachineRequest['status'], Tone> = {
  pending: 'busy',
  fulfilled: 'good',
  cancelled: 'idle',
};

const COLUMNS: readonly Column<MachineRequest>[] = [
  {
    key: 'gpus',
    title: 'Requested',
    cell: ({ gpu_class: gpu, gpu_count: count, country, min_vram_gb: vram }) => (
      <>
        {count === null ? gpu : `${count} × ${gpu}`}
        {vram === null ? null : `, ${vram} GB each`}
        {country === null ? null : `, ${country}`}
      </>
    ),
  },
  {
    key: 'budget',
    title: 'At most',
    isNumber: true,
    cell: ({ hourly_budget: usd }) => <Money usd={usd} per="h" />,
  },
  {
    key: 'status',
    title: 'Status',
    cell: ({ status, fulfilled_executor_id: node }) => (
      <>
        <Status name={status} tone={TONES[status]} />{' '}
        {node === null ? null : <Link href={paths.node(node)}>Show the node</Link>}
      </>
    ),
  },
  { key: 'created', title: 'Created', cell: ({ created_at: at }) => <Time value={at} relative /> },
  {
    key: 'actions',
    title: 'Actions',
    cell: (request) => (request.status === 'pending' ? <CancelButton request={request} /> : null),
  },
];

/** The account's requests for nodes that the market does not have yet. */
export function MachineRequests() {
  const requests = useApi('GET /machine-requests', {});
  return (
    <QueryPanel
      title="Your machine requests"
      query={requests}
      isEmpty={({ length }) => length === 0}
      empty="You have no requests. Choose “Notify me” to get a mail when a node fits your filters."
    >
      {(rows) => (
        <DataTable
          caption="Machine requests"
          columns={COLUMNS}
          rows={rows}
          rowKey={({ id }) => id}
        />
      )}
    </QueryPanel>
  );
}

function CancelButton({ request }: { request: MachineRequest }) {
  const cancel = useAction('DELETE /machine-requests/{id}');
  const { id, gpu_class: gpu } = request;
  return (
    <ConfirmDialog
      trigger="Cancel"
      title={`Cancel the request for ${gpu}?`}
      action="Cancel the request"
      isDangerous
      onConfirm={() => cancel.mutateAsync({ params: { id } })}
    >
      <p>Providers no longer see the request, and you get no mail about it.</p>
    </ConfirmDialog>
  );
}

/** Opens a form that requests a node with the present filters. */
export function NotifyMe({ filters }: { filters: UrlFilters }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setIsOpen(true)}>
        Notify me
      </button>
      <Dialog title="Request a node" isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <RequestForm filters={filters} onDone={() => setIsOpen(false)} />
      </Dialog>
    </>
  );
}

function RequestForm({ filters, onDone }: { filters: UrlFilters; onDone: () => void }) {
  const create = useAction('POST /machine-requests');
  const form = useForm(machineRequestOf(filters), async ({ country, ...values }) => {
    const body = { ...values, ...(country === '' ? {} : { country }), notify: true };
    await create.mutateAsync({ body });
    onDone();
  });
  return (
    <>
      <p>Providers see the request without your name. You get a mail when a node fulfils it.</p>
      <Form form={form} action="Request the node">
        <TextField
          form={form}
          name="gpu_class"
          label="GPU type"
          hint="For example H100."
          maxLength={200}
          isRequired
        />
        <NumberField form={form} name="gpu_count" label="GPUs" min={1} max={64} step={1} />
        <NumberField
          form={form}
          name="hourly_budget"
          label="Total price, at most"
          unit="$/h"
          min={0}
        />
        <NumberField form={form} name="min_vram_gb" label="Memory of each GPU" unit="GB" min={0} />
        <TextField form={form} name="country" label="Country" maxLength={200} />
      </Form>
    </>
  );
}
