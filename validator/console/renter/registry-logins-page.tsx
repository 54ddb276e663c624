import type { DockerCredential } from '../api/api.gen.ts';
import { DataTable } from '../parts/data-table.tsx';
import { DeleteButton } from '../parts/delete-button.tsx';
import { CancelButton, type Editor, EditorPanel, useEditor } from '../parts/editor.tsx';
import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { loginName } from './template-form.ts';

export function RegistryLoginsPage() {
  const logins = useApi('GET /docker-credentials', {});
  const editor = useEditor<DockerCredential>();
  const { item } = editor;
  return (
    <Page title="Registry logins" lead="Templates use a login to pull a private image.">
      <QueryPanel
        title="Your logins"
        query={logins}
        isEmpty={({ length }) => length === 0}
        empty="You have no login. Add one below, and choose it in a template with a private image."
      >
        {(rows) => (
          <DataTable
            caption="Registry logins"
            rows={rows}
            rowKey={({ id }) => id}
            columns={[
              { key: 'name', title: 'Name', cell: loginName },
              { key: 'user', title: 'User', cell: ({ docker_username: user }) => user },
              { key: 'changed', title: 'Changed', cell: (row) => <Time value={row.updated_at} /> },
              {
                key: 'actions',
                title: 'Actions',
                cell: (login) => <LoginButtons login={login} editor={editor} />,
              },
            ]}
          />
        )}
      </QueryPanel>
      <EditorPanel
        editor={editor}
        title={item === null ? 'Add a login' : `Change login ${loginName(item)}`}
      >
        <LoginForm editor={editor} />
      </EditorPanel>
    </Page>
  );
}

type LoginEditor = Editor<DockerCredential>;

function LoginButtons({ login, editor }: { login: DockerCredential; editor: LoginEditor }) {
  const remove = useAction('DELETE /docker-credentials/{id}');
  return (
    <div className="row">
      <button type="button" onClick={() => editor.edit(login)}>
        Change
      </button>
      <DeleteButton
        what={`login ${loginName(login)}`}
        onDelete={async () => {
          await remove.mutateAsync({ params: { id: login.id } });
          editor.finish(`Login ${loginName(login)} is deleted.`);
        }}
      >
        <p>Templates that use the login can no longer pull their private image.</p>
      </DeleteButton>
    </div>
  );
}

function LoginForm({ editor }: { editor: LoginEditor }) {
  const { item } = editor;
  const add = useAction('POST /docker-credentials');
  const change = useAction('PUT /docker-credentials/{id}');
  const initial = {
    name: item?.name ?? '',
    docker_username: item?.docker_username ?? '',
    docker_password: '',
  };
  const form = useForm(initial, async ({ name, docker_password: password, ...user }) => {
    const named = { ...user, name: name === '' ? null : name };
    if (item === null) await add.mutateAsync({ body: { ...named, docker_password: password } });
    else {
      const body = { ...named, docker_password: password === '' ? null : password };
      await change.mutateAsync({ params: { id: item.id }, body });
    }
    editor.finish(`Login ${name || user.docker_username} is saved.`);
  });
  return (
    <Form
      form={form}
      action={item === null ? 'Add the login' : 'Save'}
      extra={<CancelButton editor={editor} />}
    >
      <TextField form={form} name="name" label="Name" />
      <TextField form={form} name="docker_username" label="User" isRequired />
      <TextField
        form={form}
        name="docker_password"
        label="Password or token"
        type="password"
        autoComplete="new-password"
        hint={item === null ? undefined : 'Empty keeps the stored password.'}
        isRequired={item === null}
      />
    </Form>
  );
}
