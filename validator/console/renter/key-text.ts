/** Short forms of keys. Pure. */

const SHOWN_CHARS = 12;

/** Returns the type, the last characters and the comment of a public key. */
export function shortKey(publicKey: string): string {
  const [type = '', data = '', ...comment] = publicKey.trim().split(/\s+/);
  return [type, `…${data.slice(-SHOWN_CHARS)}`, comment.join(' ')].join(' ').trim();
}
