/** What the central API needs from outside: passed once to createCentral, in app.ts. */
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import type { HealthReport } from '#shared/central-api/validator-routes.ts';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Random } from '#shared/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
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
};
