/** Redaction of secrets in text, and the files in which systemd passes secrets to a service. Pure. */

const HIDDEN = '[hidden]';
/** Matches up to the last `@`, because a password may contain any other character. */
const URL_USERINFO = /(\/\/)[^\s"']*@/g;

/** Redacts a secret: of a URL, only scheme, host and path remain; of any other text, nothing remains. */
export function redactSecret(text: string): string {
  const url = URL.parse(text);
  if (url === null || url.host === '') return HIDDEN;
  const { protocol, host, pathname, username, password } = url;
  // An unescaped slash in a password would be parsed as the beginning of the path.
  const isParsedWhole = text.split('@').length === (username + password === '' ? 1 : 2);
  return isParsedWhole ? `${protocol}//${HIDDEN}@${host}${pathname}` : HIDDEN;
}

/** Redacts user and password of every URL in `text`. */
export function withoutPasswords(text: string): string {
  return text.replaceAll(URL_USERINFO, `$1${HIDDEN}@`);
}

const QUERY_VALUES = /([?&][^\s"'=&#]*=)[^\s"'&#]+/g;

/** Redacts passwords and query values of every URL in `text`; queries may contain tokens. */
export function withoutUrlSecrets(text: string): string {
  const shown = withoutPasswords(text);
  return shown.includes('://') ? shown.replaceAll(QUERY_VALUES, `$1${HIDDEN}`) : shown;
}

/**
 * Folder in which systemd places the credentials of running services: one folder each (systemd.exec(5),
 * LoadCredential=).
 */
const CREDENTIALS = '/run/credentials/';
const OUR_CREDENTIALS = /^\/run\/credentials\/podwright[a-z-]*\.service\//;

/**
 * Returns true for a file that only its service, or its container, can reach. Its permission bits may be those of an
 * access list or of the container's host, so they are not checked.
 */
export function isSystemdCredential(path: string): boolean {
  return path.startsWith(CREDENTIALS);
}

/**
 * Rewrites paths of our services' credentials to this process's own credentials folder. The path may name another
 * service than that of the process, for example if the process is the updater or checks the configuration before the
 * start.
 */
export function withServiceCredentials(
  environment: Record<string, string | undefined>,
): Record<string, string | undefined> {
  const { CREDENTIALS_DIRECTORY: folder } = environment;
  if (folder === undefined) return environment;
  const own = Object.entries(environment).map(([name, value]) => [
    name,
    value?.replace(OUR_CREDENTIALS, () => `${folder}/`),
  ]);
  return Object.fromEntries(own);
}
