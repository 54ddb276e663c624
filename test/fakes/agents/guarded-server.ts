/** An HTTP server with the agent's authentication and no routes. */

import { createHttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';
import { createAuth, registerAuth } from '../../../agent/identity/auth.ts';

export const EXECUTOR_ID = '3f9f41a6-0001-4000-8000-000000000001';

/**
 * Creates the server. `failures` collects the reasons of failed authentications, which the agent counts in a metric.
 */
export function createGuardedServer(clock: Clock, keys: readonly TrustedKey[]) {
  const failures: string[] = [];
  const log = createLog({ name: 'test', level: 'silent' });
  const metrics = { authFailed: (reason: string) => failures.push(reason) };
  const auth = createAuth({ clock, executorId: EXECUTOR_ID, keys, log, metrics });
  const server = createHttpServer({
    log,
    clock,
    random: systemRandom,
    bodyLimitBytes: 1000,
    verifyBody: auth.verifyBody,
  });
  registerAuth(server, auth);
  return { server, failures, replaceKeys: auth.replaceKeys };
}
