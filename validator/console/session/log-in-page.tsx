import { Link, useLocation, useSearch } from 'wouter';
import { Page } from '../parts/page.tsx';
import { Panel } from '../parts/panel.tsx';
import { pageAfterLogIn, paths } from '../paths.ts';
import { LogInForm } from './log-in-form.tsx';

export function LogInPage() {
  const [, navigate] = useLocation();
  const from = new URLSearchParams(useSearch()).get('from');
  return (
    <Page title="Log in">
      <Panel title="Your account">
        <LogInForm onDone={() => navigate(pageAfterLogIn(from))} />
        <p>
          <Link href={paths.signUp}>Create an account</Link> ·{' '}
          <Link href={paths.resetPassword}>Reset the password</Link> ·{' '}
          <Link href={paths.providerLogIn}>Log in as a provider</Link>
        </p>
      </Panel>
    </Page>
  );
}
