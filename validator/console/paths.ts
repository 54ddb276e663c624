/** Builds every path of the console, so that a changed path is changed in one place. */

export type PodTab =
  | 'overview'
  | 'logs'
  | 'terminal'
  | 'metrics'
  | 'backups'
  | 'events'
  | 'cost'
  | 'settings';
export type NodeTab = 'overview' | 'metrics' | 'pods' | 'settings' | 'requests';

export const paths = {
  home: '/',
  logIn: '/log-in',
  signUp: '/sign-up',
  resetPassword: '/reset-password',
  verifyEmail: '/verify-email',
  market: '/market',
  node: (id: string) => `/market/${encodeURIComponent(id)}`,
  rent: '/rent',
  rentNode: (id: string) => `/rent?node=${encodeURIComponent(id)}`,
  pods: '/pods',
  pod: (id: string, tab: PodTab = 'overview') =>
    `/pods/${encodeURIComponent(id)}${tab === 'overview' ? '' : `/${tab}`}`,
  /** Logs of several pods; without pods, the page offers a choice. */
  logs: (podIds: readonly string[] = []) =>
    podIds.length === 0 ? '/logs' : `/logs?pods=${podIds.map(encodeURIComponent).join(',')}`,
  volumes: '/volumes',
  volume: (id: string) => `/volumes/${encodeURIComponent(id)}`,
  templates: '/templates',
  template: (id: string) => `/templates/${encodeURIComponent(id)}`,
  /** A new template; with `from`, a copy of that template. */
  newTemplate: (from?: string) =>
    `/templates/new${from === undefined ? '' : `?from=${encodeURIComponent(from)}`}`,
  sshKeys: '/ssh-keys',
  apiKeys: '/api-keys',
  secrets: '/secrets',
  registryLogins: '/registry-logins',
  webhooks: '/webhooks',
  webhook: (id: string) => `/webhooks/${encodeURIComponent(id)}`,
  notifications: '/notifications',
  account: '/sessions-and-account',
  money: '/money',
  statement: (podId: string) => `/money/pods/${encodeURIComponent(podId)}`,
  provider: '/provider',
  providerLogIn: '/provider/log-in',
  providerNodes: '/provider/nodes',
  providerNode: (id: string, tab: NodeTab = 'overview') =>
    `/provider/nodes/${encodeURIComponent(id)}${tab === 'overview' ? '' : `/${tab}`}`,
  addNode: '/provider/add-node',
  providerRequests: '/provider/machine-requests',
  earnings: '/provider/earnings',
  providerProfile: '/provider/profile',
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
  operatorDifferences: '/operator/differences',
  operatorAccounts: '/operator/accounts',
  operatorAccount: (id: string) => `/operator/accounts/${encodeURIComponent(id)}`,
  operatorProviders: '/operator/providers',
  operatorAudit: '/operator/audit',
  operatorClock: '/operator/clock',
} as const;

/** Page to open after a log-in: `from` if it is a path of the console, else the home page. Prevents open redirects. */
export function pageAfterLogIn(from: string | null): string {
  if (from === null || !/^\/(?![/\\])/.test(from)) return paths.home;
  const first = from.split(/[?#]/, 1)[0] ?? '';
  return first === paths.logIn || first === paths.signUp ? paths.home : from;
}
