/** Why a WebSocket ends: the codes of RFC 6455 7.4 that we use; clients key on them. Pure. */

export const CLOSE = {
  /** The stream or the process has come to its end. */
  normal: 1000,
  /** The server stops. */
  goingAway: 1001,
  /** A message that is not one of the route's own. */
  invalid: 1008,
  /** A message above the bound. */
  tooBig: 1009,
  /** The other side failed: it may be tried again. */
  failed: 1011,
} as const;

/** Codes that say how a socket ended and may not be sent. */
const NO_STATUS = 1005;

/** The code to pass on to the other side of a relay for one that arrived; a broken socket is our failure. */
export function codeToPassOn(code: number): number {
  if (code === NO_STATUS) return CLOSE.normal;
  const sendable = (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1006) || code >= 3000;
  return sendable && code <= 4999 ? code : CLOSE.failed;
}
