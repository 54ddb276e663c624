import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { RentBySpecRequest, TemplateResponse } from '../api/api.gen.ts';
import { mayHaveSucceeded } from '../api/failure.ts';
import { CheckboxField, NumberField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Panel, QueryContent } from '../parts/panel.tsx';
import { useSettled } from '../parts/use-settled.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { TEMPLATE_PLACE } from './curl.ts';
import { ImageFields, type RentForm } from './image-fields.tsx';
import { KeyField } from './key-field.tsx';
import type { Node } from './node-cells.tsx';
import { RentCommands } from './rent-commands.tsx';
import { NodeCost, SpecCost } from './rent-cost.tsx';
import { obstacleOf, oneTimeTemplate, type RentValues, rentBody } from './rent-request.ts';
import { NO_SPEC, type RentState, specOf } from './spec.ts';
import { SpecFields } from './spec-fields.tsx';
import { StorageFields } from './storage-fields.tsx';
import { useIdempotencyKey } from './use-idempotency-key.tsx';
import { useRental } from './use-rental.tsx';

type RentPodProps = {
  /** Null for a rental by specification. */
  node: Node | null;
  state: RentState;
  onSpec: (change: Partial<RentState>) => void;
};

const INITIAL: RentValues = {
  pod_name: 'my-pod',
  source: 'template',
  template_id: '',
  dockerfile_content: '',
  gpu_count: null,
  user_public_key: '',
  internal_ports: '',
  initial_port_count: null,
  environment: '',
  secret_names: '',
  volume_id: '',
  termination_hours: null,
  idle_shutdown_minutes: null,
  max_spend_usd: null,
  enable_jupyter: false,
};

/** The form of a rental, with its cost and the same request as a command. */
export function RentPod({ node, state, onSpec }: RentPodProps) {
  const [, navigate] = useLocation();
  const keys = useApi('GET /ssh-keys', {});
  const { idempotencyKey, once, renew } = useIdempotencyKey();
  const rent = useRental(node, specOf(state));
  const form: RentForm = useForm(initialOf(node, state), async () => {
    const { pod_id: id } = await once((key) => rent(filled, { template, keys: known }, key));
    if (id !== null) navigate(paths.pod(id));
  });
  const known = Array.isArray(keys.data) ? keys.data : [];
  const [picked, setPicked] = useState<TemplateResponse | null>(null);
  const preference = useApi('GET /users/me/preference', {});
  const usual = useUsualTemplate(preference.data?.default_template ?? null);
  const chosen = picked ?? usual;
  const filled = filledIn(form.values, node, chosen?.id ?? '');
  const template = oneTimeTemplate(filled, chosen);
  const obstacle = obstacleOf(filled);
  const spec = node === null ? specOf(state) : {};
  const relax = (constraint: string, value: string | number | boolean) => {
    if (constraint === 'gpu_count') form.set('gpu_count', value === '' ? null : Number(value));
    else if (Object.hasOwn(NO_SPEC, constraint)) onSpec({ [constraint]: String(value) });
  };
  return (
    <>
      <Panel title={node === null ? 'Pod' : `Pod on ${node.huid}`}>
        <Form form={form} action="Rent the pod">
          <TextField form={form} name="pod_name" label="Name" maxLength={100} isRequired />
          {node === null ? <SpecFields form={form} state={state} onChange={onSpec} /> : null}
          <GpuField form={form} node={node} />
          <QueryContent query={preference}>{() => null}</QueryContent>
          <ImageFields form={form} chosen={chosen} onChoose={setPicked} />
          <KeyField
            chosen={form.values.user_public_key}
            onChange={(ids) => form.set('user_public_key', ids)}
          />
          <StorageFields form={form} />
          <LimitFields form={form} />
          {form.failure !== null && mayHaveSucceeded(form.failure) ? (
            <Uncertain onRenew={renew} />
          ) : null}
          {node === null ? (
            <DrySpec
              body={{ ...rentBody(filled, known), ...spec }}
              obstacle={obstacle}
              onRelax={relax}
            />
          ) : (
            <NodeCost
              node={node}
              gpus={filled.gpu_count ?? node.gpu_count}
              templateId={filled.source === 'template' ? filled.template_id : ''}
            />
          )}
        </Form>
      </Panel>
      <RentCommands
        path={node === null ? '/executors/rent-by-spec' : `/executors/${node.id}/rent`}
        body={{
          ...rentBody(filled, known, template === null ? undefined : TEMPLATE_PLACE),
          ...spec,
        }}
        template={template}
        idempotencyKey={idempotencyKey}
      />
    </>
  );
}

/** The default template of the account; without one, the first official template. */
function useUsualTemplate(preferred: TemplateResponse | null): TemplateResponse | undefined {
  const official = useApi('GET /templates', { query: { owner: 'official', limit: 1 } });
  const first = Array.isArray(official.data) ? official.data[0] : undefined;
  return preferred ?? first;
}

function initialOf(node: Node | null, { gpu_count: count }: RentState): RentValues {
  const requested = count === '' || Number.isNaN(Number(count)) ? 1 : Number(count);
  return { ...INITIAL, gpu_count: node === null ? requested : null };
}

/** The values with the defaults that the page shows: the smallest rental of the node, and the chosen template. */
function filledIn(values: RentValues, node: Node | null, templateId: string): RentValues {
  const least = node === null ? null : (node.min_gpu_count_for_rental ?? node.gpu_count);
  return { ...values, template_id: templateId, gpu_count: values.gpu_count ?? least };
}

function GpuField({ form, node }: { form: RentForm; node: Node | null }) {
  const least = node?.min_gpu_count_for_rental ?? node?.gpu_count;
  return (
    <NumberField
      form={form}
      name="gpu_count"
      label="GPUs"
      min={least ?? 1}
      {...(node === null ? {} : { max: node.available_gpu_count })}
      step={1}
      hint={
        node === null
          ? 'Empty for all GPUs of a node.'
          : possibleGpus(least ?? 1, node.available_gpu_count)
      }
    />
  );
}

function possibleGpus(least: number, most: number): string {
  if (most <= least) return `A rental of this node has exactly ${least}.`;
  return `${least} to ${most} are possible on this node; empty for ${least}.`;
}

/** When the pod stops by itself, and further options. */
function LimitFields({ form }: { form: RentForm }) {
  return (
    <>
      <NumberField
        form={form}
        name="termination_hours"
        label="Delete after"
        unit="hours"
        min={1}
        max={720}
        hint="1 to 720. Empty for the default of your account."
      />
      <NumberField
        form={form}
        name="idle_shutdown_minutes"
        label="Stop after idle time"
        unit="minutes"
        min={1}
        max={43_200}
        step={1}
      />
      <NumberField
        form={form}
        name="max_spend_usd"
        label="Stop at a budget of"
        unit="$"
        min={0}
        hint="The pod stops when it has cost this much."
      />
      <NumberField
        form={form}
        name="initial_port_count"
        label="External ports, at least"
        min={0}
        max={64}
        step={1}
      />
      <CheckboxField form={form} name="enable_jupyter" label="Install a notebook server" />
    </>
  );
}

/** Warning after a failure with an unknown result: the pod may have been rented. */
function Uncertain({ onRenew }: { onRenew: () => void }) {
  return (
    <div className="notice">
      <p>
        The request may have rented the pod. A repeat without changes cannot rent a second one. If
        you change the form, first check <Link href={paths.pods}>your pods</Link>.
      </p>
      <button type="button" onClick={onRenew}>
        Send it as a new request
      </button>
    </div>
  );
}

type DrySpecProps = {
  body: RentBySpecRequest;
  obstacle: string | null;
  onRelax: (constraint: string, value: string | number | boolean) => void;
};

/** Requests a dry run when the form is complete and has not changed for a moment. */
function DrySpec({ body, obstacle, onRelax }: DrySpecProps) {
  const name = body.pod_name.trim() === '' ? 'my-pod' : body.pod_name;
  const sent = JSON.stringify({ ...body, pod_name: name, dry_run: true, explain: true });
  const settled = useSettled(obstacle === null ? sent : '');
  const dryRun = useApi(
    'POST /executors/rent-by-spec',
    { body: settled === '' ? body : (JSON.parse(settled) as RentBySpecRequest) },
    { enabled: settled !== '' },
  );
  return <SpecCost dryRun={dryRun} obstacle={obstacle} onRelax={onRelax} />;
}
