/** What the central API needs from outside: passed once to createCentral, in app.ts. */
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import type { HealthReport } from '#shared/central-api/validator-routes.ts';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Random } from '#shared/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { BalanceOf } from './accounts/account.service.ts';
import type { Sessions } from './auth/session.ts';
import type { UserCredentials } from './auth/user-credentials.ts';
import type { Database } from './db/tables.ts';

/** The way to agents: through the gateway of a validator. */
export type Agents = {
  /** Calls answer `upstream_unavailable` when the gateway or the agent does not. */
  clientOf(executorId: string): AgentClient;
  /** Has the validator check the executor now; rejects with `upstream_unavailable`. */
  checkNow(executorId: string): Promise<HealthReport>;
};

export type CentralPorts = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  /** 32 bytes, the deployment's own: signs sessions and seals API keys at rest. */
  secret: Uint8Array;
  agents: Agents;
};

export type CentralOptions = {
  /** Validators that may report verdicts. */
  validators: readonly Hotkey[];
  /** Micro-dollars granted at sign-up. */
  signupCreditUusd: number;
  /** Whether new accounts count as verified at once; without a mailer there is no other way. */
  verifyEmailAtSignup: boolean;
  /** Proxies whose X-Forwarded-For is believed. */
  trustedProxies: readonly string[];
  /** Whom canonically signed requests of validators must name; `central` when absent. */
  audience?: string;
  /** Whether owners can read their API keys again after making them; true when absent. */
  apiKeysRetrievable?: boolean;
};

/** What a group of routes is registered with. */
export type CentralDeps = {
  ports: CentralPorts;
  options: CentralOptions;
  /** Issues portal and user tokens. */
  sessions: Sessions;
  /** Looks again at the credentials of a request, for streams that outlast them. */
  users: UserCredentials;
  balanceOf: BalanceOf;
  /** Aborts when the server is to stop: streams and waits end on it. */
  stopping: AbortSignal;
};
