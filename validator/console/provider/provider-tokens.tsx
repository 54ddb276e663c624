import { useState } from 'react';
import type { ProviderToken } from '../api/portal.gen.ts';
import { dateOf, parseLocalTime } from '../browser/clock.ts';
import { CommandBlock } from '../parts/command-block.tsx';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { usePortal, usePortalAction } from '../session/queries.tsx';

const COLUMNS: readonly Column<ProviderToken>[] = [
  { key: 'name', title: 'Name', cell: ({ name }) => name },
  { key: 'token', title: 'Token', cell: ({ masked_token: masked }) => <code>{masked}</code> },
  { key: 'created', title: 'Created', cell: ({ created_at: at }) => <Time value={at} /> },
  {
    key: 'expires',
    title: 'Expires',
    cell: ({ expires_at: at }) => (at === null ? 'never' : <Time value={at} />),
  },
  {
    key: 'used',
    title: 'Last use',
    cell: ({ last_used: at }) => (at === null ? 'never' : <Time value={at} relative />),
  },
  { key: 'actions', title: 'Actions', cell: (token) => <DeleteButton token={token} /> },
];

/** Tokens for programs. The portal limits their number to 20, so the list has one page. */
export function ProviderTokens() {
  const tokens = usePortal('GET /auth/tokens', {});
  return (
    <QueryPanel title="Provider tokens" query={tokens}>
      {({ data }) => (
        <>
          {data.length === 0 ? (
            <p className="empty">
              You have no tokens. Create one for a program that uses the portal.
            </p>
          ) : (
            <DataTable
              caption="Provider tokens"
              columns={COLUMNS}
              rows={data}
              rowKey={({ id }) => id}
            />
          )}
          <TokenForm />
        </>
      )}
    </QueryPanel>
  );
}

function DeleteButton({ token: { id, name } }: { token: ProviderToken }) {
  const remove = usePortalAction('DELETE /auth/tokens/{id}');
  return (
    <ConfirmDialog
      trigger="Delete"
      title={`Delete token ${name}?`}
      action="Delete"
      isDangerous
      onConfirm={() => remove.mutateAsync({ params: { id } })}
    >
      <p>Programs that use this token can no longer log in.</p>
    </ConfirmDialog>
  );
}

function TokenForm() {
  const create = usePortalAction('POST /auth/tokens');
  const [token, setToken] = useState<string | null>(null);
  const form = useForm({ name: '', expires_at: '' }, async ({ name, expires_at: expiry }) => {
    const expiresMs = parseLocalTime(expiry);
    const body =
      expiresMs === null ? { name } : { name, expires_at: dateOf(expiresMs).toISOString() };
    const { data } = await create.mutateAsync({ body });
    setToken(data.token);
  });
  return (
    <>
      {token === null ? null : (
        <CommandBlock label="New token. It is shown only now" command={token} />
      )}
      <Form form={form} action="Create a token">
        <TextField
          form={form}
          name="name"
          label="Name"
          hint="For example the program that uses it."
          maxLength={100}
          isRequired
        />
        <TextField
          form={form}
          name="expires_at"
          label="Expires, in your time zone"
          type="datetime-local"
          hint="Empty: the token does not expire."
        />
      </Form>
    </>
  );
}
