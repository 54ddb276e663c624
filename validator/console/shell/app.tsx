import { CSPProvider } from '@base-ui/react/csp-provider';
import { Suspense } from 'react';
import { Link, Redirect, Route, Switch, useLocation, useSearch } from 'wouter';
import { ErrorBoundary } from '../parts/error-boundary.tsx';
import { lazyPart } from '../parts/lazy-part.tsx';
import { Page } from '../parts/page.tsx';
import { PageNoticesProvider } from '../parts/page-notices.tsx';
import { Loading, Panel, QueryPanel } from '../parts/panel.tsx';
import { ThemeSelect } from '../parts/theme.tsx';
import { paths } from '../paths.ts';
import { type PageRoute, ROUTES } from '../routes.tsx';
import { useApi } from '../session/queries.tsx';
import { SessionProvider, useIsSimulated, useSession } from '../session/session.tsx';
import { TicketExchange } from '../session/ticket-exchange.tsx';
import { useAudiences } from './audiences.tsx';
import { Navigation } from './navigation.tsx';
import { SearchDialog } from './search-dialog.tsx';

/** Loaded when a session ends, because most visits do not need it. */
const ExpiredDialog = lazyPart(() =>
  import('../session/expired-dialog.tsx').then((module) => module.ExpiredDialog),
);
const ProviderExpiredDialog = lazyPart(() =>
  import('../provider/expired-dialog.tsx').then((module) => module.ProviderExpiredDialog),
);

/** The whole console. Base UI must not insert style elements, which the content security policy forbids. */
export function App() {
  return (
    <CSPProvider disableStyleElements>
      <SessionProvider>
        <PageNoticesProvider>
          <TicketExchange>
            <Shell />
          </TicketExchange>
        </PageNoticesProvider>
      </SessionProvider>
    </CSPProvider>
  );
}

function Shell() {
  const [path] = useLocation();
  return (
    <>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="top">
        <Link href={paths.home} className="brand">
          Podwright
        </Link>
        <div className="row">
          <SearchDialog />
          <ThemeSelect />
          <ProviderLink />
          <AccountLinks />
        </div>
      </header>
      <div className="body">
        <Navigation />
        <main id="content" tabIndex={-1}>
          <ErrorBoundary key={path}>
            <Suspense fallback={<Loading />}>
              <Switch>
                {ROUTES.map((route) => (
                  <Route key={route.path} path={route.path}>
                    <Allowed route={route} />
                  </Route>
                ))}
                <Route>
                  <NotFoundPage />
                </Route>
              </Switch>
            </Suspense>
          </ErrorBoundary>
        </main>
      </div>
      <SessionEnd />
    </>
  );
}

function SessionEnd() {
  const { isExpired } = useSession('user');
  const { isExpired: isPortalExpired } = useSession('portal');
  if (!isExpired && !isPortalExpired) return null;
  return (
    <ErrorBoundary>
      <Suspense>{isExpired ? <ExpiredDialog /> : <ProviderExpiredDialog />}</Suspense>
    </ErrorBoundary>
  );
}

/** Shows that the visitor is logged in as a provider, and leads to the log-out. */
function ProviderLink() {
  const { session } = useSession('portal');
  if (session === null) return null;
  return (
    <Link href={paths.providerProfile} className="small provider-link" title={session.name}>
      Provider {session.name.slice(0, 6)}…
    </Link>
  );
}

function AccountLinks() {
  const { session, logOut } = useSession();
  if (session === null) return <Link href={paths.logIn}>Log in</Link>;
  return (
    <>
      <span className="small account">{session.name}</span>
      <button type="button" onClick={() => void logOut()}>
        Log out
      </button>
    </>
  );
}

/** Leads visitors without a session to the log-in, which returns to this page. */
function Allowed({ route }: { route: PageRoute }) {
  const [path] = useLocation();
  const search = useSearch();
  const { audience, page: Content } = route;
  const { session } = useSession('user');
  const audiences = useAudiences();
  const isSimulated = useIsSimulated();
  if (route.isOfSimulation === true && !isSimulated) return <UnknownPage />;
  if (audiences.has(audience)) return <Content />;
  const from = encodeURIComponent(search === '' ? path : `${path}?${search}`);
  if (audience === 'provider')
    return <Redirect to={`${paths.providerLogIn}?from=${from}`} replace />;
  if (session === null) return <Redirect to={`${paths.logIn}?from=${from}`} replace />;
  return <ForbiddenPage title={route.title} />;
}

/** A page for operators. The role of the visitor is unknown until the account has been read. */
function ForbiddenPage({ title }: { title: string }) {
  const account = useApi('GET /users/me', {});
  const isKnown = account.data !== undefined;
  return (
    <Page title={isKnown ? 'Operators only' : title}>
      <QueryPanel
        title={isKnown ? 'Your account may not see this page' : 'Your account'}
        query={account}
      >
        {() => <p>An operator of the marketplace can set the role of your account.</p>}
      </QueryPanel>
    </Page>
  );
}

/** In place of a page that only a simulated marketplace has; any answer of the API shows whether it is one. */
function UnknownPage() {
  const { session } = useSession('user');
  const hasSession = session !== null;
  const account = useApi('GET /users/me', {}, { enabled: hasSession });
  const version = useApi('GET /version', {}, { enabled: !hasSession });
  if (account.data !== undefined || version.data !== undefined) return <NotFoundPage />;
  const loading = { title: 'Marketplace', children: () => null };
  return (
    <Page title="Marketplace">
      {hasSession ? (
        <QueryPanel query={account} {...loading} />
      ) : (
        <QueryPanel query={version} {...loading} />
      )}
    </Page>
  );
}

function NotFoundPage() {
  return (
    <Page title="Page not found">
      <Panel title="There is no page at this address">
        <p>
          Check the address, search with Ctrl-K, or go to the{' '}
          <Link href={paths.home}>home page</Link>.
        </p>
      </Panel>
    </Page>
  );
}
