import type { Secret } from '../api/api.gen.ts';
import { DataTable } from '../parts/data-table.tsx';
import { DeleteButton } from '../parts/delete-button.tsx';
import { CancelButton, type Editor, EditorPanel, useEditor } from '../parts/editor.tsx';
import { TextArea, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useAction, useApi } from '../session/queries.tsx';

export function SecretsPage() {
  const secrets = useApi('GET /secrets', {});
  const editor = useEditor<Secret>();
  return (
    <Page
      title="Secrets"
      lead="A pod receives the secrets that you choose when you rent it. Values are never shown again."
    >
      <QueryPanel
        title="Your secrets"
        query={secrets}
        isEmpty={({ length }) => length === 0}
        empty="You have no secret. Set one below, for example the token of a model registry."
      >
        {(rows) => (
          <DataTable
            caption="Secrets"
            rows={rows}
            rowKey={({ id }) => id}
            columns={[
              { key: 'name', title: 'Name', cell: ({ name }) => <code>{name}</code> },
              { key: 'set', title: 'Set', cell: (secret) => <Time value={secret.updated_at} /> },
              {
                key: 'actions',
                title: 'Actions',
                cell: (secret) => <SecretButtons secret={secret} editor={editor} />,
              },
            ]}
          />
        )}
      </QueryPanel>
      <EditorPanel
        editor={editor}
        title={editor.item === null ? 'Set a secret' : `Replace the value of ${editor.item.name}`}
      >
        <SecretForm editor={editor} />
      </EditorPanel>
    </Page>
  );
}

function SecretButtons({ secret, editor }: { secret: Secret; editor: Editor<Secret> }) {
  const { id, name } = secret;
  const remove = useAction('DELETE /secrets/{id}');
  return (
    <div className="row">
      <button type="button" onClick={() => editor.edit(secret)}>
        Replace
      </button>
      <DeleteButton
        what={`secret ${name}`}
        onDelete={async () => {
          await remove.mutateAsync({ params: { id } });
          editor.finish(`Secret ${name} is deleted.`);
        }}
      >
        <p>The value is lost. New pods cannot receive it.</p>
      </DeleteButton>
    </div>
  );
}

function SecretForm({ editor }: { editor: Editor<Secret> }) {
  const { item } = editor;
  const save = useAction('POST /secrets');
  const form = useForm({ name: item?.name ?? '', value: '' }, async (body) => {
    await save.mutateAsync({ body });
    editor.finish(`Secret ${body.name} is set.`);
  });
  return (
    <Form form={form} action="Set the secret" extra={<CancelButton editor={editor} />}>
      <TextField
        form={form}
        name="name"
        label="Name"
        hint="The same name replaces the value of an existing secret."
        isRequired
      />
      <TextArea form={form} name="value" label="Value" isRequired />
    </Form>
  );
}
