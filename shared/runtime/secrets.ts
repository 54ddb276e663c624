/** Text without its secrets, for people to read. Pure. */

const HIDDEN = '[hidden]';
/** Up to the last `@`: a password may hold every other character. */
const URL_USERINFO = /(\/\/)[^\s"']*@/g;

/** What may be shown of a secret: scheme, host and path of an address, nothing of anything else. */
export function hidden(text: string): string {
  const url = URL.parse(text);
  if (url === null || url.host === '') return HIDDEN;
  const { protocol, host, pathname, username, password } = url;
  // A password with a slash in it, unescaped, would be read as host and path.
  const isWhole = text.split('@').length === (username + password === '' ? 1 : 2);
  return isWhole ? `${protocol}//${HIDDEN}@${host}${pathname}` : HIDDEN;
}

/** Addresses in `text` lose their user and password. */
export function withoutPasswords(text: string): string {
  return text.replaceAll(URL_USERINFO, `$1${HIDDEN}@`);
}

/** Names stay, values go. */
const QUERY_VALUES = /([?&][^\s"'=&#]*=)[^\s"'&#]+/g;

/** Addresses in `text` lose their passwords, too, and the values in their queries: tokens are given there. */
export function withoutUrlSecrets(text: string): string {
  const shown = withoutPasswords(text);
  return shown.includes('://') ? shown.replaceAll(QUERY_VALUES, `$1${HIDDEN}`) : shown;
}

/**
 * Files that systemd hands to a service (systemd.exec(5), LoadCredential=): a folder of its own for each service that runs, which
 * no other service and no user of the host can enter.
 */

const CREDENTIALS = '/run/credentials/';
const OF_OUR_SERVICES = /^\/run\/credentials\/podwright[a-z-]*\.service\//;

/** Whether none but its service can reach the file: the bits of its mode may then be those of an access list. */
export function isCredential(path: string): boolean {
  return path.startsWith(CREDENTIALS);
}

/**
 * The environment with the credentials that it names where this process has them: it may be another service than theirs, and be
 * given the same, as the switcher of an agent's release or the look at a configuration before its service is started.
 */
export function withOwnCredentials(
  environment: Record<string, string | undefined>,
): Record<string, string | undefined> {
  const { CREDENTIALS_DIRECTORY: folder } = environment;
  if (folder === undefined) return environment;
  const own = Object.entries(environment).map(([name, value]) => [
    name,
    value?.replace(OF_OUR_SERVICES, () => `${folder}/`),
  ]);
  return Object.fromEntries(own);
}
