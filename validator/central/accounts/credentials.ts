/** Composes authentication: sessions, API keys, tickets, passwords and signatures of validators. */
import type { HttpServer } from '#shared/http/server.ts';
import type { CentralOptions, CentralPorts } from '../platform/central-deps.ts';
import type { Sweeps } from '../platform/schedule/retention.ts';
import { createApiKeys, type KeyBudgets } from './api-keys/api-key.service.ts';
import { createApiKeySecrets } from './auth/api-key-secret.ts';
import { type AuthenticationDeps, installAuthentication } from './auth/authenticate.ts';
import { createCredentialWatch } from './auth/credential-watch.ts';
import { createLogInTickets } from './auth/log-in-ticket.ts';
import { createPasswords } from './auth/password.ts';
import { createSessions } from './auth/session.ts';
import { createStreamTickets } from './auth/stream-ticket.ts';
import { createUserCredentials } from './auth/user-credentials.ts';
import { createValidatorSignatures } from './auth/validator-signature.ts';

/** Audience that canonical signatures must name if the options state none. */
const DEFAULT_AUDIENCE = 'central';

export type Credentials = ReturnType<typeof createCredentials>;

export function createCredentials(
  ports: CentralPorts,
  options: CentralOptions,
  stopping: AbortSignal,
  budgets: KeyBudgets,
) {
  const { db, clock, random, log, secret } = ports;
  const { sessionMs: lifetimeMs } = options;
  const sessions = createSessions({ clock, random, secret, lifetimeMs });
  const apiKeys = createApiKeys({
    db,
    clock,
    random,
    log,
    secrets: createApiKeySecrets({ random, secret }),
    retrievable: options.apiKeysRetrievable ?? true,
    budgets,
  });
  const logInTickets = createLogInTickets({ db, clock, random, sessions, lifetimeMs });
  const tickets = createStreamTickets({ db, clock, random, secret });
  const validators = createValidatorSignatures({
    db,
    clock,
    log,
    audience: options.audience ?? DEFAULT_AUDIENCE,
    validators: options.validators,
    verify: ports.verifyValidator,
  });

  return {
    sessions,
    apiKeys,
    logInTickets,
    tickets,
    /** Verifies the body of a request with a canonical signature. */
    verifyBody: validators.verifyBody,
    passwords: createPasswords({ random, cost: options.passwordCost }),
    watch: createCredentialWatch({ db, clock, log, sessions, apiKeys, stopping }),

    /** Authenticates all routes registered afterwards. */
    install(
      server: HttpServer,
      others: Pick<AuthenticationDeps, 'providerTokens' | 'validatorOf'>,
    ): void {
      const users = createUserCredentials({ db, sessions, apiKeys });
      installAuthentication(server, { db, sessions, users, validators, tickets, ...others });
    },

    sweeps: {
      sessions: sessions.sweep,
      'log-in-tickets': logInTickets.sweep,
      'stream-tickets': tickets.sweep,
      'validator-signatures': validators.sweep,
    } satisfies Sweeps,
  };
}
