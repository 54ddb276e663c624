/** All pages: their path, who may see them, and their place in the navigation. */
import type { ComponentType } from 'react';
import { lazyPage } from './parts/lazy-part.tsx';
import { paths } from './paths.ts';
import { HomePage } from './renter/home-page.tsx';

/** `operator`: an account with the role; `provider`: a session of the portal. */
export type Audience = 'anyone' | 'renter' | 'provider' | 'operator';
export type NavGroup = 'Rent' | 'Account' | 'Provide' | 'Validator' | 'Operate';

export type PageRoute = {
  /** Pattern of the path. */
  path: string;
  /** Text of the link, and of the entry in the search. */
  title: string;
  audience: Audience;
  /** Absent: the page has no link in the navigation. */
  group?: NavGroup;
  /** True: only a simulated marketplace has the page. */
  isOfSimulation?: boolean;
  page: ComponentType;
};

export const ROUTES: readonly PageRoute[] = [
  { path: paths.home, title: 'Home', audience: 'renter', group: 'Rent', page: HomePage },
  {
    path: paths.market,
    title: 'Market',
    audience: 'renter',
    group: 'Rent',
    page: lazyPage(() => import('./market/market-page.tsx').then(({ MarketPage }) => MarketPage)),
  },
  {
    path: '/market/:id',
    title: 'Node',
    audience: 'renter',
    page: lazyPage(() => import('./market/node-page.tsx').then(({ NodePage }) => NodePage)),
  },
  {
    path: paths.rent,
    title: 'Rent a pod',
    audience: 'renter',
    group: 'Rent',
    page: lazyPage(() => import('./market/rent-page.tsx').then(({ RentPage }) => RentPage)),
  },
  {
    path: paths.pods,
    title: 'Pods',
    audience: 'renter',
    group: 'Rent',
    page: lazyPage(() => import('./renter/pods-page.tsx').then(({ PodsPage }) => PodsPage)),
  },
  {
    path: '/pods/:id/:tab?',
    title: 'Pod',
    audience: 'renter',
    page: lazyPage(() => import('./renter/pod-page.tsx').then(({ PodPage }) => PodPage)),
  },
  {
    path: paths.logs(),
    title: 'Logs',
    audience: 'renter',
    group: 'Rent',
    page: lazyPage(() => import('./logs/logs-page.tsx').then(({ LogsPage }) => LogsPage)),
  },
  {
    path: paths.volumes,
    title: 'Volumes',
    audience: 'renter',
    group: 'Rent',
    page: lazyPage(() =>
      import('./renter/volumes-page.tsx').then(({ VolumesPage }) => VolumesPage),
    ),
  },
  {
    path: '/volumes/:id',
    title: 'Volume',
    audience: 'renter',
    page: lazyPage(() => import('./renter/volume-page.tsx').then(({ VolumePage }) => VolumePage)),
  },
  {
    path: paths.templates,
    title: 'Templates',
    audience: 'renter',
    group: 'Rent',
    page: lazyPage(() =>
      import('./renter/templates-page.tsx').then(({ TemplatesPage }) => TemplatesPage),
    ),
  },
  {
    path: '/templates/new',
    title: 'Create a template',
    audience: 'renter',
    page: lazyPage(() =>
      import('./renter/template-page.tsx').then(({ NewTemplatePage }) => NewTemplatePage),
    ),
  },
  {
    path: '/templates/:id',
    title: 'Template',
    audience: 'renter',
    page: lazyPage(() =>
      import('./renter/template-page.tsx').then(({ TemplatePage }) => TemplatePage),
    ),
  },
  {
    path: paths.money,
    title: 'Money',
    audience: 'renter',
    group: 'Account',
    page: lazyPage(() => import('./money/money-page.tsx').then(({ MoneyPage }) => MoneyPage)),
  },
  {
    path: '/money/pods/:id',
    title: 'Statement of a pod',
    audience: 'renter',
    page: lazyPage(() =>
      import('./money/pod-statement.tsx').then(({ StatementPage }) => StatementPage),
    ),
  },
  {
    path: paths.sshKeys,
    title: 'SSH keys',
    audience: 'renter',
    group: 'Account',
    page: lazyPage(() =>
      import('./renter/ssh-keys-page.tsx').then(({ SshKeysPage }) => SshKeysPage),
    ),
  },
  {
    path: paths.apiKeys,
    title: 'API keys',
    audience: 'renter',
    group: 'Account',
    page: lazyPage(() =>
      import('./renter/api-keys-page.tsx').then(({ ApiKeysPage }) => ApiKeysPage),
    ),
  },
  {
    path: paths.secrets,
    title: 'Secrets',
    audience: 'renter',
    group: 'Account',
    page: lazyPage(() =>
      import('./renter/secrets-page.tsx').then(({ SecretsPage }) => SecretsPage),
    ),
  },
  {
    path: paths.registryLogins,
    title: 'Registry logins',
    audience: 'renter',
    group: 'Account',
    page: lazyPage(() =>
      import('./renter/registry-logins-page.tsx').then(
        ({ RegistryLoginsPage }) => RegistryLoginsPage,
      ),
    ),
  },
  {
    path: paths.webhooks,
    title: 'Webhooks',
    audience: 'renter',
    group: 'Account',
    page: lazyPage(() =>
      import('./renter/webhooks-page.tsx').then(({ WebhooksPage }) => WebhooksPage),
    ),
  },
  {
    path: '/webhooks/:id',
    title: 'Webhook',
    audience: 'renter',
    page: lazyPage(() =>
      import('./renter/webhook-page.tsx').then(({ WebhookPage }) => WebhookPage),
    ),
  },
  {
    path: paths.notifications,
    title: 'Notifications',
    audience: 'renter',
    group: 'Account',
    page: lazyPage(() =>
      import('./renter/notifications-page.tsx').then(({ NotificationsPage }) => NotificationsPage),
    ),
  },
  {
    path: paths.account,
    title: 'Sessions and account',
    audience: 'renter',
    group: 'Account',
    page: lazyPage(() =>
      import('./renter/account-page.tsx').then(({ AccountPage }) => AccountPage),
    ),
  },
  {
    path: paths.validator,
    title: 'Validator',
    audience: 'operator',
    group: 'Validator',
    page: lazyPage(() =>
      import('./checks/status-page.tsx').then(({ ValidatorPage }) => ValidatorPage),
    ),
  },
  {
    path: paths.validatorCycles,
    title: 'Cycles',
    audience: 'operator',
    group: 'Validator',
    page: lazyPage(() => import('./checks/cycle-pages.tsx').then(({ CyclesPage }) => CyclesPage)),
  },
  {
    path: '/validator/cycles/:number',
    title: 'Cycle',
    audience: 'operator',
    page: lazyPage(() => import('./checks/cycle-pages.tsx').then(({ CyclePage }) => CyclePage)),
  },
  {
    path: '/validator/nodes/:id',
    title: 'Evidence of a node',
    audience: 'operator',
    page: lazyPage(() =>
      import('./checks/evidence-pages.tsx').then(({ NodeEvidencePage }) => NodeEvidencePage),
    ),
  },
  {
    path: '/validator/evidence/:id',
    title: 'Evidence',
    audience: 'operator',
    page: lazyPage(() =>
      import('./checks/evidence-pages.tsx').then(({ EvidencePage }) => EvidencePage),
    ),
  },
  {
    path: paths.validatorEpochs,
    title: 'Epochs',
    audience: 'operator',
    group: 'Validator',
    page: lazyPage(() => import('./checks/epoch-pages.tsx').then(({ EpochsPage }) => EpochsPage)),
  },
  {
    path: '/validator/epochs/:number',
    title: 'Epoch',
    audience: 'operator',
    page: lazyPage(() => import('./checks/epoch-pages.tsx').then(({ EpochPage }) => EpochPage)),
  },
  {
    path: '/validator/epochs/:number/nodes/:id',
    title: 'Why this weight',
    audience: 'operator',
    page: lazyPage(() => import('./checks/weight-page.tsx').then(({ WeightPage }) => WeightPage)),
  },
  {
    path: paths.validatorReleases,
    title: 'Releases',
    audience: 'operator',
    group: 'Validator',
    page: lazyPage(() =>
      import('./checks/releases-page.tsx').then(({ ReleasesPage }) => ReleasesPage),
    ),
  },
  {
    path: paths.operator,
    title: 'Fleet',
    audience: 'operator',
    group: 'Operate',
    page: lazyPage(() => import('./operator/fleet-page.tsx').then(({ FleetPage }) => FleetPage)),
  },
  {
    path: paths.operatorHealth,
    title: 'Health',
    audience: 'operator',
    group: 'Operate',
    page: lazyPage(() => import('./operator/health-page.tsx').then(({ HealthPage }) => HealthPage)),
  },
  {
    path: paths.operatorDifferences,
    title: 'Differences',
    audience: 'operator',
    group: 'Operate',
    page: lazyPage(() =>
      import('./operator/differences-page.tsx').then(({ DifferencesPage }) => DifferencesPage),
    ),
  },
  {
    path: paths.operatorAccounts,
    title: 'Accounts',
    audience: 'operator',
    group: 'Operate',
    page: lazyPage(() =>
      import('./operator/accounts-page.tsx').then(({ AccountsPage }) => AccountsPage),
    ),
  },
  {
    path: '/operator/accounts/:id',
    title: 'Account',
    audience: 'operator',
    page: lazyPage(() =>
      import('./operator/account-page.tsx').then(({ AccountPage }) => AccountPage),
    ),
  },
  {
    path: paths.operatorProviders,
    title: 'Providers',
    audience: 'operator',
    group: 'Operate',
    page: lazyPage(() =>
      import('./operator/providers-page.tsx').then(({ ProvidersPage }) => ProvidersPage),
    ),
  },
  {
    path: paths.operatorAudit,
    title: 'Audit trail',
    audience: 'operator',
    group: 'Operate',
    page: lazyPage(() => import('./operator/audit-page.tsx').then(({ AuditPage }) => AuditPage)),
  },
  {
    path: paths.operatorClock,
    title: 'Test clock',
    audience: 'operator',
    group: 'Operate',
    isOfSimulation: true,
    page: lazyPage(() => import('./operator/clock-page.tsx').then(({ ClockPage }) => ClockPage)),
  },
  {
    path: paths.logIn,
    title: 'Log in',
    audience: 'anyone',
    page: lazyPage(() => import('./session/log-in-page.tsx').then(({ LogInPage }) => LogInPage)),
  },
  {
    path: paths.signUp,
    title: 'Create an account',
    audience: 'anyone',
    page: lazyPage(() => import('./session/sign-up-page.tsx').then(({ SignUpPage }) => SignUpPage)),
  },
  {
    path: paths.resetPassword,
    title: 'Reset the password',
    audience: 'anyone',
    page: lazyPage(() =>
      import('./session/mail-pages.tsx').then(({ ResetPasswordPage }) => ResetPasswordPage),
    ),
  },
  {
    path: paths.verifyEmail,
    title: 'Confirm your address',
    audience: 'anyone',
    page: lazyPage(() =>
      import('./session/mail-pages.tsx').then(({ VerifyEmailPage }) => VerifyEmailPage),
    ),
  },
  {
    path: paths.provider,
    title: 'Provider',
    audience: 'provider',
    page: lazyPage(() => import('./provider/nodes-page.tsx').then((module) => module.ProviderHome)),
  },
  {
    path: paths.providerLogIn,
    title: 'Log in as a provider',
    audience: 'anyone',
    page: lazyPage(() =>
      import('./provider/log-in-page.tsx').then((module) => module.ProviderLogInPage),
    ),
  },
  {
    path: paths.providerNodes,
    title: 'Nodes',
    audience: 'provider',
    group: 'Provide',
    page: lazyPage(() => import('./provider/nodes-page.tsx').then(({ NodesPage }) => NodesPage)),
  },
  {
    path: paths.addNode,
    title: 'Add a node',
    audience: 'provider',
    group: 'Provide',
    page: lazyPage(() =>
      import('./provider/add-node-page.tsx').then(({ AddNodePage }) => AddNodePage),
    ),
  },
  {
    path: '/provider/nodes/:id/:tab?',
    title: 'Node',
    audience: 'provider',
    page: lazyPage(() => import('./provider/node-page.tsx').then(({ NodePage }) => NodePage)),
  },
  {
    path: paths.providerRequests,
    title: 'Machine requests',
    audience: 'provider',
    group: 'Provide',
    page: lazyPage(() =>
      import('./provider/requests-page.tsx').then(({ RequestsPage }) => RequestsPage),
    ),
  },
  {
    path: paths.earnings,
    title: 'Earnings',
    audience: 'provider',
    group: 'Provide',
    page: lazyPage(() =>
      import('./provider/earnings-page.tsx').then(({ EarningsPage }) => EarningsPage),
    ),
  },
  {
    path: paths.providerProfile,
    title: 'Provider profile',
    audience: 'provider',
    group: 'Provide',
    page: lazyPage(() =>
      import('./provider/profile-page.tsx').then((module) => module.ProviderProfilePage),
    ),
  },
];
