import type { Webhook } from '../api/api.gen.ts';
import { CancelButton, type Editor } from '../parts/editor.tsx';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { CheckboxField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { ShownOnce } from '../parts/shown-once.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { addressRule, choiceOf, EVENT_TYPES, type EventChoice, eventsFrom } from './webhook.ts';

type Values = EventChoice & { url: string; description: string };

/** Creates a webhook, or changes the chosen one. */
export function WebhookForm({ editor }: { editor: Editor<Webhook> }) {
  const { item } = editor;
  const create = useAction('POST /webhooks');
  const change = useAction('PATCH /webhooks/{id}');
  const version = useApi('GET /version', {});
  const rule = addressRule(version.data);
  const { url = '', description = '', events = [] } = item ?? {};
  const initial: Values = { url, description, ...choiceOf(events) };
  const send = async ({ url, description, ...choice }: Values) => {
    const body = { url, events: eventsFrom(choice), description: description || null };
    if (item !== null) {
      await change.mutateAsync({ params: { id: item.id }, body });
      editor.finish(`Webhook ${url} is changed.`);
      return;
    }
    const { secret } = await create.mutateAsync({ body });
    editor.finish(
      <>
        <p>Webhook {url} is created and receives events from now on.</p>
        <ShownOnce label="Secret that signs its deliveries" value={secret} />
      </>,
    );
  };
  const form = useForm<Values>(initial, send, { events: 'outcomes' });
  return (
    <Form
      form={form}
      action={item === null ? 'Create the webhook' : 'Save'}
      extra={<CancelButton editor={editor} />}
    >
      <TextField
        form={form}
        name="url"
        label="Address"
        type="url"
        placeholder={rule.example}
        hint={rule.hint}
        isRequired
      />
      {version.error === null ? null : (
        <FailureNotice error={version.error} retry={() => void version.refetch()} />
      )}
      <TextField form={form} name="description" label="Description" maxLength={200} />
      <fieldset>
        <legend>Events; none selects all</legend>
        {EVENT_TYPES.map((type) => (
          <CheckboxField key={type} form={form} name={type} label={type} />
        ))}
        <TextField
          form={form}
          name="outcomes"
          label="Single outcomes"
          hint="For example: backup.failed pod-create.success"
        />
      </fieldset>
    </Form>
  );
}
