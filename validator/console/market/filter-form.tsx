import { useState } from 'react';
import { type ApiFailure, failureOf } from '../api/failure.ts';
import { CheckboxField, NumberField, SelectField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { useApi } from '../session/queries.tsx';
import {
  type FilterFields,
  fieldsOf,
  NO_FILTERS,
  type UrlFilters,
  urlFiltersOf,
} from './filters.ts';
import { NODE_FIELDS } from './node-fields.ts';

type FilterFormProps = {
  state: UrlFilters;
  /** Error of the list, whose problems are shown at the fields. */
  error: unknown;
  onChange: (filters: UrlFilters) => void;
};

/** Fields of the filters. Key it by the filters of the address, so that it follows a change from elsewhere. */
export function FilterForm({ state, error, onChange }: FilterFormProps) {
  const form = useForm<FilterFields>(fieldsOf(state), async (fields) =>
    onChange(urlFiltersOf(fields)),
  );
  const failure: ApiFailure | null = error === null ? null : failureOf(error);
  const fields = { ...form, failure };
  return (
    <div className="filters">
      <Form
        form={form}
        action="Show nodes"
        extra={
          <button type="button" onClick={() => onChange(NO_FILTERS)}>
            Remove all filters
          </button>
        }
      >
        <div className="filter-grid">
          <GpuTypeField form={fields} />
          <NumberField form={fields} {...NODE_FIELDS.gpu_count_gte} />
          <NumberField form={fields} {...NODE_FIELDS.min_vram_gb} />
          <NumberField form={fields} {...NODE_FIELDS.price_lte} />
          <NumberField form={fields} {...NODE_FIELDS.price_per_hour_lte} />
          <TextField form={fields} {...NODE_FIELDS.country} />
          <NumberField form={fields} {...NODE_FIELDS.min_reliability} />
        </div>
        <MoreFilters form={fields} />
        <CheckboxField form={fields} {...NODE_FIELDS.bookmarked} />
      </Form>
    </div>
  );
}

type FieldsProps = { form: ReturnType<typeof useForm<FilterFields>> };

function MoreFilters({ form }: FieldsProps) {
  return (
    <details>
      <summary>More filters: place, processors, memory, disk, last check</summary>
      <div className="filter-grid">
        <TextField form={form} {...NODE_FIELDS.region} />
        <NumberField form={form} {...NODE_FIELDS.min_cpus} />
        <NumberField form={form} {...NODE_FIELDS.min_ram_gb} />
        <NumberField form={form} {...NODE_FIELDS.min_disk_gb} />
        <NumberField form={form} {...NODE_FIELDS.max_check_age_minutes} />
        <NumberField form={form} {...NODE_FIELDS.max_distance_mile} />
        <NumberField form={form} name="lat" label="Latitude" unit="degrees" min={-90} max={90} />
        <NumberField form={form} name="lon" label="Longitude" unit="degrees" min={-180} max={180} />
        <PlaceButton form={form} />
      </div>
    </details>
  );
}

/** Fills in the place of the visitor, after the browser's question. */
function PlaceButton({ form }: FieldsProps) {
  const [problem, setProblem] = useState<string | null>(null);
  const locate = () =>
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => {
        setProblem(null);
        form.set('lat', Math.round(coords.latitude * 100) / 100);
        form.set('lon', Math.round(coords.longitude * 100) / 100);
      },
      () => setProblem('The browser did not return a place. Enter latitude and longitude.'),
    );
  return (
    <div className="field">
      <button type="button" onClick={locate}>
        Use my place
      </button>
      {problem === null ? null : <p className="problem small">{problem}</p>}
    </div>
  );
}

function GpuTypeField({ form }: FieldsProps) {
  const stats = useApi('GET /executors/stats', {});
  const types = Array.isArray(stats.data) ? stats.data.map(({ gpu_type: type }) => type) : [];
  const chosen = form.values.gpu_type;
  const all = [...new Set(chosen === '' ? types : [...types, chosen])].toSorted();
  return (
    <SelectField
      form={form}
      {...NODE_FIELDS.gpu_type}
      options={[{ value: '', label: 'Any' }, ...all.map((type) => ({ value: type, label: type }))]}
    />
  );
}
