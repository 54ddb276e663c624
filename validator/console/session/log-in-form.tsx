import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { useSession } from './session.tsx';
import { visitor } from './visitor.tsx';

/** Logs in with address and password. Used by the log-in page and by the dialog over pages of an expired session. */
export function LogInForm({ email = '', onDone }: { email?: string; onDone?: () => void }) {
  const { start } = useSession();
  const form = useForm({ email, password: '' }, async (body) => {
    const { token, user } = await visitor.api('POST /users/login', { body });
    start({ token, name: user.email });
    onDone?.();
  });
  return (
    <Form form={form} action="Log in">
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
        autoComplete="current-password"
        isRequired
      />
    </Form>
  );
}
