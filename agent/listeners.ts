/** What the agent listens with: the main server with its rules, and one for metrics and health where they are separate. */
import { refuseSecretsInClear } from '#shared/api/agent/secrets.ts';
import { createHttpServer } from '#shared/http/server.ts';
import { CERTIFICATE_INTERVAL_MS, createCertificateJob } from '#shared/tls/listener-certificate.ts';
import type { AgentPorts } from './agent-ports.ts';
import { signAnswers } from './identity/answer-signing.ts';
import { registerAuth } from './identity/auth.ts';
import { registerIdentityRoutes } from './identity/identity.routes.ts';
import type { PeriodicWork } from './periodic-work.ts';

const BODY_LIMIT_BYTES = 1024 * 1024;
/** Nothing there takes a body. */
const MONITORING_BODY_LIMIT_BYTES = 1_024;

/** Nothing listens yet, and no route is there but the identity's. */
export function createListeners(ports: AgentPorts) {
  const { log, clock, random, auth, identity, executorId, certificates } = ports;
  const certificate = certificates === null ? null : createCertificateJob(certificates, log);
  const shown = () => certificate?.shown() ?? null;
  const server = createHttpServer({
    ...{ log, clock, random },
    bodyLimitBytes: BODY_LIMIT_BYTES,
    believesTraces: true,
    verifyBody: auth.verifyBody,
    tls: shown(),
  });
  registerAuth(server, auth);
  refuseSecretsInClear(server);
  signAnswers(server, identity, executorId);
  registerIdentityRoutes(server, { ...ports, shown });
  const monitoring = ports.separateMonitoring
    ? createHttpServer({ log, clock, random, bodyLimitBytes: MONITORING_BODY_LIMIT_BYTES })
    : null;
  const renewal = (job: NonNullable<typeof certificate>): PeriodicWork => ({
    name: 'certificate',
    intervalMs: CERTIFICATE_INTERVAL_MS,
    run: () => job.runOnce(server),
  });

  return {
    server,
    /** Null: metrics and health are on the main one. */
    monitoring,
    work: certificate === null ? [] : [renewal(certificate)],

    /** Requests under way come to their end. */
    async close(): Promise<void> {
      await Promise.all([server.close(), monitoring?.close()]);
    },
  };
}

export type Listeners = ReturnType<typeof createListeners>;
