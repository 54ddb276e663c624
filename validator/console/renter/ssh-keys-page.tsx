import type { SshKey } from '../api/api.gen.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { DeleteButton } from '../parts/delete-button.tsx';
import { CancelButton, type Editor, EditorPanel, useEditor } from '../parts/editor.tsx';
import { TextArea, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { shortKey } from './key-text.ts';

export function SshKeysPage() {
  const keys = useApi('GET /ssh-keys', {});
  const editor = useEditor<SshKey>();
  return (
    <Page title="SSH keys" lead="New pods accept the keys that you choose when you rent them.">
      <QueryPanel
        title="Your keys"
        query={keys}
        isEmpty={({ length }) => length === 0}
        empty="You have no SSH key. Add your public key below to log in to pods over SSH."
      >
        {(rows) => (
          <DataTable
            caption="SSH keys"
            rows={rows}
            rowKey={({ id }) => id}
            columns={[
              { key: 'name', title: 'Name', cell: ({ name }) => name },
              {
                key: 'key',
                title: 'Key',
                cell: ({ name, public_key: text }) => (
                  <span className="row">
                    <code>{shortKey(text)}</code>
                    <CopyButton text={text} label={`Copy key ${name}`} />
                  </span>
                ),
              },
              { key: 'added', title: 'Added', cell: (key) => <Time value={key.created_at} /> },
              {
                key: 'actions',
                title: 'Actions',
                cell: (key) => <SshKeyButtons sshKey={key} editor={editor} />,
              },
            ]}
          />
        )}
      </QueryPanel>
      <EditorPanel
        editor={editor}
        title={editor.item === null ? 'Add an SSH key' : `Change SSH key ${editor.item.name}`}
      >
        <SshKeyForm editor={editor} />
      </EditorPanel>
    </Page>
  );
}

function SshKeyButtons({ sshKey, editor }: { sshKey: SshKey; editor: Editor<SshKey> }) {
  const { id, name } = sshKey;
  const remove = useAction('DELETE /ssh-keys/{id}');
  return (
    <div className="row">
      <button type="button" onClick={() => editor.edit(sshKey)}>
        Change
      </button>
      <DeleteButton
        what={`SSH key ${name}`}
        onDelete={async () => {
          await remove.mutateAsync({ params: { id } });
          editor.finish(`SSH key ${name} is deleted.`);
        }}
      >
        <p>New pods no longer accept the key. Pods that have the key keep it.</p>
      </DeleteButton>
    </div>
  );
}

function SshKeyForm({ editor }: { editor: Editor<SshKey> }) {
  const { item } = editor;
  const add = useAction('POST /ssh-keys');
  const change = useAction('PUT /ssh-keys/{id}');
  const initial = { name: item?.name ?? '', public_key: item?.public_key ?? '' };
  const form = useForm(initial, async (body) => {
    if (item === null) await add.mutateAsync({ body });
    else await change.mutateAsync({ params: { id: item.id }, body });
    editor.finish(`SSH key ${body.name} is saved.`);
  });
  return (
    <Form
      form={form}
      action={item === null ? 'Add the key' : 'Save'}
      extra={<CancelButton editor={editor} />}
    >
      <TextField form={form} name="name" label="Name" maxLength={100} isRequired />
      <TextArea
        form={form}
        name="public_key"
        label="Public key"
        hint="The content of a file such as ~/.ssh/id_ed25519.pub. Never enter a private key."
        isRequired
      />
    </Form>
  );
}
