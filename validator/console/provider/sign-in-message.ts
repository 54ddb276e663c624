/** The message that a provider signs to log in: the present time in seconds. Pure. */

/** Time for which the server accepts a signed message. */
const VALID_MS = 300_000;
const SECOND_MS = 1_000;

export function messageAt(nowMs: number): string {
  return String(Math.floor(nowMs / SECOND_MS));
}

/** Returns the milliseconds until the server rejects the message; 0 if it does already. */
export function validForMs(message: string, nowMs: number): number {
  return Math.max(Number(message) * SECOND_MS + VALID_MS - nowMs, 0);
}

/** Command that signs the message with the key of the provider's command line. */
export function signCommand(message: string): string {
  return `npm run --silent provider -- sign ${message}`;
}
