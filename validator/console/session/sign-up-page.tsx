import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { CommandBlock } from '../parts/command-block.tsx';
import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Page } from '../parts/page.tsx';
import { Panel } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { useSession } from './session.tsx';
import { visitor } from './visitor.tsx';

/** Creates an account, logs in, and shows the account's first API key, which the API returns only once. */
export function SignUpPage() {
  const { start } = useSession();
  const [, navigate] = useLocation();
  const [apiKey, setApiKey] = useState<string | null>(null);
  const form = useForm({ name: '', email: '', password: '' }, async ({ name, email, password }) => {
    const { api_key: key } = await visitor.api('POST /auth/signup', {
      body: { email, password, ...(name === '' ? {} : { name }) },
    });
    const { token, user } = await visitor.api('POST /users/login', { body: { email, password } });
    setApiKey(key);
    start({ token, name: user.email });
  });
  if (apiKey !== null) {
    return (
      <Page title="Welcome">
        <Panel title="Your API key">
          <p>
            Programs use this key. The console does not need it. You can create other keys later.
          </p>
          <CommandBlock label="API key" command={apiKey} />
          <p>We have sent you a mail to confirm your address.</p>
          <button type="button" className="primary" onClick={() => navigate(paths.home)}>
            Continue
          </button>
        </Panel>
      </Page>
    );
  }
  return (
    <Page title="Create an account">
      <Panel title="Your account">
        <Form form={form} action="Create the account">
          <TextField form={form} name="name" label="Name" autoComplete="name" />
          <TextField
            form={form}
            name="email"
            label="E-mail"
            type="email"
            autoComplete="username"
            isRequired
          />
          <TextField
            form={form}
            name="password"
            label="Password"
            type="password"
            autoComplete="new-password"
            hint="8 to 128 characters."
            isRequired
          />
        </Form>
        <p>
          <Link href={paths.logIn}>Log in to an account</Link>
        </p>
      </Panel>
    </Page>
  );
}
