/** Builds every path of the console, so that a changed path is changed in one place. */

export type PodTab = 'overview' | 'logs' | 'terminal' | 'metrics' | 'backups' | 'events' | 'cost';

export const paths = {
  home: '/',
  logIn: '/log-in',
  signUp: '/sign-up',
  resetPassword: '/reset-password',
  verifyEmail: '/verify-email',
  market: '/market',
  rent: '/rent',
  pods: '/pods',
  pod: (id: string, tab: PodTab = 'overview') =>
    `/pods/${encodeURIComponent(id)}${tab === 'overview' ? '' : `/${tab}`}`,
  volumes: '/volumes',
  templates: '/templates',
  sshKeys: '/ssh-keys',
  apiKeys: '/api-keys',
  secrets: '/secrets',
  registryLogins: '/registry-logins',
  webhooks: '/webhooks',
  notifications: '/notifications',
  account: '/sessions-and-account',
  money: '/money',
  provider: '/provider',
  providerLogIn: '/provider/log-in',
  validator: '/validator',
  validatorCycles: '/validator/cycles',
  validatorCycle: (number: number) => `/validator/cycles/${number}`,
  nodeEvidence: (id: string) => `/validator/nodes/${encodeURIComponent(id)}`,
  evidence: (id: string) => `/validator/evidence/${encodeURIComponent(id)}`,
  validatorEpochs: '/validator/epochs',
  validatorEpoch: (number: number) => `/validator/epochs/${number}`,
  weight: (epoch: number, id: string) =>
    `/validator/epochs/${epoch}/nodes/${encodeURIComponent(id)}`,
  validatorReleases: '/validator/releases',
  operator: '/operator',
  operatorHealth: '/operator/health',
  operatorAccounts: '/operator/accounts',
  operatorAccount: (id: string) => `/operator/accounts/${encodeURIComponent(id)}`,
  operatorProviders: '/operator/providers',
  operatorAudit: '/operator/audit',
} as const;

/** Page to open after a log-in: `from` if it is a path of the console, else the home page. Prevents open redirects. */
export function pageAfterLogIn(from: string | null): string {
  if (from === null || !/^\/(?![/\\])/.test(from)) return paths.home;
  const first = from.split(/[?#]/, 1)[0] ?? '';
  return first === paths.logIn || first === paths.signUp ? paths.home : from;
}
