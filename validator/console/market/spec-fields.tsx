import { NumberField, TextField } from '../parts/fields.tsx';
import type { FormState } from '../parts/form.tsx';
import { NODE_FIELDS } from './node-fields.ts';
import type { UrlSpec } from './spec.ts';

type SpecFieldsProps = {
  /** State of the form that contains the fields. */
  form: Pick<FormState<never>, 'failure' | 'labels' | 'isPending' | 'submit' | 'reset'>;
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
  const { failure, labels, isPending, submit, reset } = form;
  const fields: FormState<Values> = {
    failure,
    labels,
    isPending,
    submit,
    reset,
    values: valuesOf(state),
    set: (name, value) => onChange({ [name]: String(value ?? '') }),
  };
  return (
    <div className="filter-grid">
      <TextField form={fields} {...NODE_FIELDS.gpu_type} hint="For example H100." />
      <NumberField form={fields} {...NODE_FIELDS.min_vram_gb} />
      <NumberField form={fields} {...NODE_FIELDS.max_price_per_gpu_hour} />
      <TextField form={fields} {...NODE_FIELDS.country} />
      <NumberField form={fields} {...NODE_FIELDS.min_reliability} />
      <NumberField form={fields} {...NODE_FIELDS.min_cpus} />
      <NumberField form={fields} {...NODE_FIELDS.min_ram_gb} />
      <NumberField form={fields} {...NODE_FIELDS.min_disk_gb} />
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
