/** Text without its secrets, for people to read. Pure. */

const HIDDEN = '[hidden]';
/** User and password of an address. */
const CREDENTIALS = /(\/\/)[^/@\s"']*@/g;
const ADDRESS = /^([a-z][a-z0-9+]*:\/\/)(?:[^/?#@\s]*@)?([a-z0-9.:[\]-]+)(\/[^?#\s@]*)?/i;

/** What may be shown of a secret: scheme, host and path of an address, nothing of anything else. */
export function hidden(text: string): string {
  const [, scheme = '', host, path = ''] = ADDRESS.exec(text) ?? [];
  if (host === undefined) return HIDDEN;
  return `${scheme}${HIDDEN}@${host}${path}`;
}

/** Addresses in `text` lose their user and password. */
export function withoutPasswords(text: string): string {
  return text.replaceAll(CREDENTIALS, `$1${HIDDEN}@`);
}
