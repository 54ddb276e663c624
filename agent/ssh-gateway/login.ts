/** Who may come in: public keys only, each proved by a signature, with a bound on tries. */
import type { AuthContext, Connection } from 'ssh2';
import { type AuthorizedKey, hasSigned, keyMeant } from './authorized-keys.ts';

export const MAX_TRIES = 6;

export type LoginPorts = {
  /** The pod's keys as they are at this moment. */
  keys(): readonly AuthorizedKey[];
  /** Counts against the address. */
  failed(): void;
};

/** Resolves with the key that was proved, or null when the client ran out of tries or left. */
export function logIn(client: Connection, ports: LoginPorts): Promise<AuthorizedKey | null> {
  let tries = 0;
  let proved: AuthorizedKey | null = null;

  function decide(context: AuthContext): void {
    // Clients begin with it to learn what is offered.
    if (context.method === 'none') {
      context.reject(['publickey']);
      return;
    }
    const key = context.method === 'publickey' ? keyMeant(context, ports.keys()) : null;
    if (context.method === 'publickey' && key !== null) {
      const isQuestion = context.signature === undefined;
      if (!isQuestion && hasSigned(context, key)) proved = key;
      if (isQuestion || proved === key) {
        context.accept();
        return;
      }
    }
    ports.failed();
    tries += 1;
    context.reject(['publickey']);
    if (tries >= MAX_TRIES) client.end();
  }

  return new Promise((resolve) => {
    client.on('authentication', decide);
    client.once('ready', () => resolve(proved));
    client.once('close', () => resolve(null));
  });
}
