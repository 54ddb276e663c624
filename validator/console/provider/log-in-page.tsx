import { Link, useLocation, useSearch } from 'wouter';
import { Page } from '../parts/page.tsx';
import { Panel } from '../parts/panel.tsx';
import { pageAfterLogIn, paths } from '../paths.ts';
import { useSession } from '../session/session.tsx';
import { ProviderLogInForms } from './log-in-forms.tsx';

export function ProviderLogInPage() {
  const [, navigate] = useLocation();
  const from = new URLSearchParams(useSearch()).get('from');
  const { session, isExpired } = useSession('portal');
  const isLoggedIn = session !== null && !isExpired;
  return (
    <Page
      title="Log in as a provider"
      lead="A provider offers nodes with GPUs. Its identity is a hotkey; an account of a renter is not needed."
    >
      {isLoggedIn ? (
        <Panel title="You are logged in">
          <p>
            Your hotkey is <code>{session.name}</code>.{' '}
            <Link href={paths.providerNodes}>Show the nodes</Link>
          </p>
        </Panel>
      ) : (
        <ProviderLogInForms
          onDone={() => navigate(from === null ? paths.providerNodes : pageAfterLogIn(from))}
        />
      )}
    </Page>
  );
}
