import { NumberField, TextField } from '../parts/fields.tsx';
import type { FormState } from '../parts/form.tsx';
import type { UrlSpec } from './spec.ts';

type SpecFieldsProps = {
  /** State of the form that contains the fields. */
  form: Pick<FormState<never>, 'failure' | 'isPending' | 'submit' | 'reset'>;
  state: UrlSpec;
  onChange: (change: Partial<UrlSpec>) => void;
};

type Numbers = {
  min_vram_gb: number | null;
  max_price_per_gpu_hour: number | null;
  min_reliability: number | null;
  min_cpus: number | null;
  min_ram_gb: number | null;
  min_disk_gb: number | null;
};
type Values = Numbers & { gpu_type: string; country: string };

/** Fields that select the node of a rental by specification. The address of the page keeps them. */
export function SpecFields({ form, state, onChange }: SpecFieldsProps) {
  const { failure, isPending, submit, reset } = form;
  const fields: FormState<Values> = {
    failure,
    isPending,
    submit,
    reset,
    values: valuesOf(state),
    set: (name, value) => onChange({ [name]: String(value ?? '') }),
  };
  return (
    <div className="filter-grid">
      <TextField form={fields} name="gpu_type" label="GPU type" hint="For example H100." />
      <NumberField
        form={fields}
        name="min_vram_gb"
        label="Memory of each GPU, at least"
        unit="GB"
        min={0}
      />
      <NumberField
        form={fields}
        name="max_price_per_gpu_hour"
        label="Price per GPU, at most"
        unit="$/h"
        min={0}
      />
      <TextField form={fields} name="country" label="Country" hint="Code or English name." />
      <NumberField
        form={fields}
        name="min_reliability"
        label="Reliability, at least"
        min={0}
        max={1}
        hint="From 0 to 1, over 30 days."
      />
      <NumberField form={fields} name="min_cpus" label="Processors, at least" min={0} step={1} />
      <NumberField form={fields} name="min_ram_gb" label="Memory, at least" unit="GB" min={0} />
      <NumberField form={fields} name="min_disk_gb" label="Free disk, at least" unit="GB" min={0} />
    </div>
  );
}

function valuesOf(state: UrlSpec): Values {
  const number = (text: string) =>
    text === '' || Number.isNaN(Number(text)) ? null : Number(text);
  return {
    gpu_type: state.gpu_type,
    country: state.country,
    min_vram_gb: number(state.min_vram_gb),
    max_price_per_gpu_hour: number(state.max_price_per_gpu_hour),
    min_reliability: number(state.min_reliability),
    min_cpus: number(state.min_cpus),
    min_ram_gb: number(state.min_ram_gb),
    min_disk_gb: number(state.min_disk_gb),
  };
}
