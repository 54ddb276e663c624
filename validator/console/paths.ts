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
  /** Logs of several pods; without pods, the page offers a choice. */
  logs: (podIds: readonly string[] = []) =>
    podIds.length === 0 ? '/logs' : `/logs?pods=${podIds.map(encodeURIComponent).join(',')}`,
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
  operator: '/operator',
} as const;

/** Page to open after a log-in: `from` if it is a path of the console, else the home page. Prevents open redirects. */
export function pageAfterLogIn(from: string | null): string {
  if (from === null || !/^\/(?![/\\])/.test(from)) return paths.home;
  const first = from.split(/[?#]/, 1)[0] ?? '';
  return first === paths.logIn || first === paths.signUp ? paths.home : from;
}
