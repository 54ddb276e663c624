import { type ReactNode, useState } from 'react';
import type { User } from '../api/api.gen.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Outcome } from '../parts/outcome.tsx';
import { useAction } from '../session/queries.tsx';
import { useSession } from '../session/session.tsx';

export function ConfirmAddress({ email }: { email: string }) {
  const send = useAction('POST /auth/resend-verify-email');
  const [outcome, setOutcome] = useState<ReactNode>(null);
  return (
    <>
      <p>Open the link in our mail to confirm your address.</p>
      <div>
        <ActionButton
          label="Send the mail again"
          run={async () => {
            await send.mutateAsync({ body: { email } });
            setOutcome(`The mail is sent to ${email}.`);
          }}
        />
      </div>
      <Outcome>{outcome}</Outcome>
    </>
  );
}

export function ChangeProfile({ user }: { user: User }) {
  const change = useAction('PUT /users/me');
  const [outcome, setOutcome] = useState<ReactNode>(null);
  const initial = { name: user.name, company_name: user.company_name ?? '' };
  const form = useForm(initial, async ({ name, company_name: company }) => {
    setOutcome(null);
    await change.mutateAsync({ body: { name, company_name: company || null } });
    setOutcome('Your profile is saved.');
  });
  return (
    <>
      <Form form={form} action="Save the profile">
        <TextField form={form} name="name" label="Name" autoComplete="name" maxLength={100} />
        <TextField
          form={form}
          name="company_name"
          label="Company"
          autoComplete="organization"
          maxLength={100}
        />
      </Form>
      <Outcome>{outcome}</Outcome>
    </>
  );
}

type Credentials = { email: string; new_password: string; current_password: string };

/** Changes the address, the password or both. The forms begin again after a success, without the passwords. */
export function ChangeCredentials({ user }: { user: User }) {
  const [{ round, outcome }, setDone] = useState<{ round: number; outcome: ReactNode }>({
    round: 0,
    outcome: null,
  });
  return (
    <>
      <CredentialsForm
        key={round}
        email={user.email}
        onDone={(text) => setDone({ round: round + 1, outcome: text })}
      />
      <Outcome>{outcome}</Outcome>
    </>
  );
}

function CredentialsForm({ email, onDone }: { email: string; onDone: (text: string) => void }) {
  const change = useAction('PUT /users/me');
  const { session, start } = useSession();
  const initial: Credentials = { email, new_password: '', current_password: '' };
  const form = useForm(initial, async (values) => {
    const { new_password: password, current_password: current } = values;
    const body = { current_password: current, ...(password && { new_password: password }) };
    const isMoved = values.email !== email;
    const { email: stored } = await change.mutateAsync({
      body: isMoved ? { ...body, email: values.email } : body,
    });
    if (session !== null && stored !== email) start({ ...session, name: stored });
    onDone(
      isMoved && stored === email
        ? `Open the link in our mail to ${values.email} to confirm the new address.`
        : 'Your address and password are saved.',
    );
  });
  return (
    <Form form={form} action="Save address and password">
      <TextField
        form={form}
        name="email"
        label="E-mail"
        type="email"
        autoComplete="email"
        hint="A new address counts after you confirm it."
        isRequired
      />
      <TextField
        form={form}
        name="new_password"
        label="New password"
        type="password"
        autoComplete="new-password"
        hint="8 to 128 characters. Empty keeps the password. A new password ends your other sessions."
      />
      <TextField
        form={form}
        name="current_password"
        label="Present password"
        type="password"
        autoComplete="current-password"
        isRequired
      />
    </Form>
  );
}
