import type { EnterPlace, NodeLocation } from '../api/portal.gen.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { NumberField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import type { Tone } from '../parts/tone.ts';
import { usePortal, usePortalAction } from '../session/queries.tsx';
import type { NodeTabProps } from './node-page.tsx';

const TONES: Record<NodeLocation['evidence'][number]['result'], Tone> = {
  confirms: 'good',
  contradicts: 'bad',
  undecided: 'idle',
};

/** The place of a node, by which renters filter, and the evidence for it. */
export function NodeLocationPanel({ node: { id, huid } }: NodeTabProps) {
  const location = usePortal('GET /executors/{id}/location', { params: { id } });
  const remove = usePortalAction('DELETE /executors/{id}/location');
  return (
    <QueryPanel title="Place" query={location}>
      {({ data }) => (
        <>
          <p>{STATES[data.location_check ?? 'none']}</p>
          {data.evidence.length === 0 ? null : (
            <ul className="plain">
              {data.evidence.map(({ source, result, detail }) => (
                <li key={source + detail}>
                  <Status name={result} tone={TONES[result]} /> {detail}
                </li>
              ))}
            </ul>
          )}
          <PlaceForm id={id} entered={data.entered} />
          {data.entered === null ? null : (
            <div className="row">
              <ConfirmDialog
                trigger="Remove the place"
                title={`Remove the place of node ${huid}?`}
                action="Remove"
                onConfirm={() => remove.mutateAsync({ params: { id } })}
              >
                <p>The node then matches no filter by country, region or distance.</p>
              </ConfirmDialog>
            </div>
          )}
        </>
      )}
    </QueryPanel>
  );
}

const STATES = {
  none: 'No place is entered, so the node matches no filter by country, region or distance.',
  entered: 'The place is entered, but not yet confirmed. Renters see it.',
  confirmed: 'The evidence confirms the place. Renters see it.',
  contradicted: 'The evidence contradicts the place, so renters do not see it. Correct it.',
} as const;

function PlaceForm({ id, entered }: { id: string; entered: NodeLocation['entered'] }) {
  const set = usePortalAction('POST /executors/{id}/location');
  const form = useForm(
    {
      country_code: entered?.country_code ?? '',
      region: entered?.region ?? '',
      city: entered?.city ?? '',
      lat: entered?.lat ?? null,
      lon: entered?.lon ?? null,
    },
    (values) => set.mutateAsync({ params: { id }, body: placeOf(values) }),
  );
  return (
    <Form form={form} action="Save the place">
      <TextField
        form={form}
        name="country_code"
        label="Country"
        hint="Two letters (ISO 3166-1), such as DE."
        maxLength={2}
        isRequired
      />
      <TextField
        form={form}
        name="region"
        label="Region"
        hint="The part of the ISO 3166-2 code behind the hyphen, such as BE."
        maxLength={3}
      />
      <TextField form={form} name="city" label="City" maxLength={100} />
      <NumberField
        form={form}
        name="lat"
        label="Latitude"
        unit="degrees north"
        min={-90}
        max={90}
      />
      <NumberField
        form={form}
        name="lon"
        label="Longitude"
        unit="degrees east"
        min={-180}
        max={180}
        hint="Latitude and longitude belong together; filters by distance need them."
      />
      <p role="status">{set.isSuccess ? 'Saved.' : null}</p>
    </Form>
  );
}

type PlaceValues = {
  country_code: string;
  region: string;
  city: string;
  lat: number | null;
  lon: number | null;
};

/** Leaves out empty fields. */
function placeOf({ country_code, region, city, lat, lon }: PlaceValues): EnterPlace {
  return { country_code, region: region || null, city: city || null, lat, lon };
}
