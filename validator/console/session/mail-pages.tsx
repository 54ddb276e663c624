/** Pages that mails link to, with the token in the query. */
import { useState } from 'react';
import { Link, useSearch } from 'wouter';
import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Page } from '../parts/page.tsx';
import { Panel } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { useClient } from './session.tsx';

function useToken(): string {
  return new URLSearchParams(useSearch()).get('token') ?? '';
}

/** Requests the mail, or sets a new password with the token of the mail. */
export function ResetPasswordPage() {
  const token = useToken();
  return (
    <Page title="Reset the password">
      {token === '' ? <RequestReset /> : <SetPassword token={token} />}
    </Page>
  );
}

function RequestReset() {
  const { api } = useClient();
  const [isSent, setIsSent] = useState(false);
  const form = useForm({ email: '' }, async (body) => {
    await api('POST /users/request-reset-password', { body });
    setIsSent(true);
  });
  return (
    <Panel title="Your address">
      {isSent ? (
        <p role="status">If the address has an account, we have sent a mail with a link to it.</p>
      ) : (
        <Form form={form} action="Send the mail">
          <TextField
            form={form}
            name="email"
            label="E-mail"
            type="email"
            autoComplete="username"
            isRequired
          />
        </Form>
      )}
    </Panel>
  );
}

function SetPassword({ token }: { token: string }) {
  const { api } = useClient();
  const [isDone, setIsDone] = useState(false);
  const form = useForm({ new_password: '' }, async (values) => {
    await api('POST /users/reset-password', { body: { token, ...values } });
    setIsDone(true);
  });
  return (
    <Panel title="New password">
      {isDone ? (
        <p role="status">
          The password is changed. <Link href={paths.logIn}>Log in</Link>
        </p>
      ) : (
        <Form form={form} action="Change the password">
          <TextField
            form={form}
            name="new_password"
            label="New password"
            type="password"
            autoComplete="new-password"
            hint="8 to 128 characters."
            isRequired
          />
        </Form>
      )}
    </Panel>
  );
}

/** Confirms an address. A button sends the token, because programs that check mails open their links. */
export function VerifyEmailPage() {
  const token = useToken();
  const { api } = useClient();
  const [isDone, setIsDone] = useState(false);
  const form = useForm({}, async () => {
    await api('POST /auth/verify-email', { body: { token } });
    setIsDone(true);
  });
  return (
    <Page title="Confirm your address">
      <Panel title="Your address">
        {isDone ? (
          <p role="status">
            Your address is confirmed. <Link href={paths.home}>Continue</Link>
          </p>
        ) : (
          <Form form={form} action="Confirm the address">
            <p>Confirm that you have received our mail.</p>
          </Form>
        )}
      </Panel>
    </Page>
  );
}
