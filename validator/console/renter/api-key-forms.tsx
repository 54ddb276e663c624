import type { ApiKey } from '../api/api.gen.ts';
import { localFieldOf, parseApiTime } from '../browser/clock.ts';
import { CancelButton, type Editor } from '../parts/editor.tsx';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { CheckboxField, NumberField, TextField } from '../parts/fields.tsx';
import { Form, type FormState, useForm } from '../parts/form.tsx';
import { timeOfField } from '../parts/local-time.ts';
import { ShownOnce } from '../parts/shown-once.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { SCOPES, scopesFrom } from './api-key.ts';

type Limits = {
  name: string;
  expires_at: string;
  daily_budget_usd: number | null;
  max_budget_usd: number | null;
};
type NewKey = Limits & { read: boolean; rent: boolean; manage: boolean };

const NEW_KEY: NewKey = {
  name: '',
  read: true,
  rent: false,
  manage: false,
  expires_at: '',
  daily_budget_usd: null,
  max_budget_usd: null,
};

export function CreateApiKey({ editor }: { editor: Editor<ApiKey> }) {
  const create = useAction('POST /keys');
  const form = useForm<NewKey>(NEW_KEY, async ({ read, rent, manage, ...limits }) => {
    const scopes = scopesFrom({ read, rent, manage });
    const { name, key } = await create.mutateAsync({ body: { ...bodyOf(limits), scopes } });
    editor.finish(
      <>
        <p>API key {name} is created.</p>
        {key === null ? null : <ShownOnce label={`API key ${name}`} value={key} />}
      </>,
    );
  });
  return (
    <Form form={form} action="Create the key">
      <TextField form={form} name="name" label="Name" maxLength={100} isRequired />
      <ScopeFields form={form} />
      <TextField
        form={form}
        name="expires_at"
        label="Expires"
        type="datetime-local"
        hint="In your local time. Empty: the key never expires."
      />
      <NumberField
        form={form}
        name="daily_budget_usd"
        label="Budget per day"
        unit="USD"
        min={0}
        hint="The day begins at 00:00 UTC. Empty: no limit."
      />
      <NumberField
        form={form}
        name="max_budget_usd"
        label="Budget in total"
        unit="USD"
        min={0}
        hint="When a budget is spent, the pods of the key stop. Empty: no limit."
      />
    </Form>
  );
}

/** The scopes cannot be changed later. The API describes each of them. */
function ScopeFields({ form }: { form: FormState<NewKey> }) {
  const catalogue = useApi('GET /keys/scopes', {});
  return (
    <fieldset>
      <legend>Scopes, which cannot be changed later</legend>
      {SCOPES.map((scope) => {
        const known = catalogue.data?.scopes.find((row) => row.scope === scope);
        return (
          <CheckboxField
            key={scope}
            form={form}
            name={scope}
            label={known?.title ?? scope}
            hint={known?.description}
          />
        );
      })}
      {catalogue.error === null ? null : (
        <FailureNotice error={catalogue.error} retry={() => void catalogue.refetch()} />
      )}
    </fieldset>
  );
}

export function ChangeApiKey({ apiKey, editor }: { apiKey: ApiKey; editor: Editor<ApiKey> }) {
  const change = useAction('PATCH /keys/{id}');
  const expiresMs = apiKey.expires_at === null ? null : parseApiTime(apiKey.expires_at);
  const initial = {
    name: apiKey.name,
    expires_at: expiresMs === null ? '' : localFieldOf(expiresMs),
    daily_budget_usd: apiKey.daily_budget_usd,
    max_budget_usd: apiKey.max_budget_usd,
  };
  const form = useForm<Limits>(initial, async (limits) => {
    // The field has whole minutes, so an unchanged time would still differ.
    const { expires_at: expires, ...others } = bodyOf(limits);
    const body =
      limits.expires_at === initial.expires_at ? others : { ...others, expires_at: expires };
    await change.mutateAsync({ params: { id: apiKey.id }, body });
    editor.finish(`API key ${limits.name} is changed.`);
  });
  return (
    <Form form={form} action="Save" extra={<CancelButton editor={editor} />}>
      <TextField form={form} name="name" label="Name" maxLength={100} isRequired />
      <TextField
        form={form}
        name="expires_at"
        label="Expires"
        type="datetime-local"
        hint="In your local time. Empty: the key never expires."
      />
      <NumberField form={form} name="daily_budget_usd" label="Budget per day" unit="USD" min={0} />
      <NumberField form={form} name="max_budget_usd" label="Budget in total" unit="USD" min={0} />
    </Form>
  );
}

function bodyOf({ expires_at: expires, ...limits }: Limits) {
  return { ...limits, expires_at: timeOfField(expires) };
}
