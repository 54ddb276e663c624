/** Text without its secrets, for people to read. Pure. */

const HIDDEN = '[hidden]';
/** Up to the last `@`: a password may hold every other character. */
const CREDENTIALS = /(\/\/)[^\s"']*@/g;

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
  return text.replaceAll(CREDENTIALS, `$1${HIDDEN}@`);
}

/** Names stay, values go. */
const QUERY_VALUES = /([?&][^\s"'=&#]*=)[^\s"'&#]+/g;

/** Addresses in `text` lose their passwords, too, and the values in their queries: tokens are given there. */
export function withoutUrlSecrets(text: string): string {
  const shown = withoutPasswords(text);
  return shown.includes('://') ? shown.replaceAll(QUERY_VALUES, `$1${HIDDEN}`) : shown;
}
