/** Creates the agent's HTTP servers: the main one with its access rules, and one for metrics and health if they are separate. */

import type { Enrolment } from '#shared/api/agent/identity.ts';
import { rejectSecretsOverHttp } from '#shared/api/agent/secrets.ts';
import { limitConnections } from '#shared/http/connection-limit.ts';
import { createHttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Identity } from '#shared/signing/identity.ts';
import {
  CERTIFICATE_INTERVAL_MS,
  type CertificateSource,
  createCertificateJob,
} from '#shared/tls/listener-certificate.ts';
import { type Auth, registerAuth } from './identity/auth.ts';
import { registerIdentityRoutes, signResponses } from './identity/identity.routes.ts';
import type { PeriodicWork } from './periodic-work.ts';

const BODY_LIMIT_BYTES = 1024 * 1024;
/** Maximum size of a body. Small, because no route of the monitoring listener accepts a body. */
const MONITORING_BODY_LIMIT_BYTES = 1_024;

/** Far above the needs of a validator with streams of all pods. A connection with TLS uses about 60 KiB. */
const MAX_CONNECTIONS_PER_SOURCE = 2_000;

export type ListenersPorts = {
  executorId: string;
  clock: Clock;
  random: Random;
  log: Log;
  auth: Auth;
  identity: Identity;
  /** Null until the provider has enrolled the identity's key. */
  readEnrolment(): Enrolment | null;
  /** Null: the listener is plain HTTP. */
  certificates: CertificateSource | null;
  /** True: metrics and health are on a separate plain listener, and the main one has no /metrics. */
  separateMonitoring: boolean;
};

/** Registers only the identity route and does not listen yet. */
export function createListeners(ports: ListenersPorts) {
  const { log, clock, random, auth, identity, executorId, certificates } = ports;
  const certificate = certificates === null ? null : createCertificateJob(certificates, log);
  const shown = () => certificate?.current() ?? null;
  const server = createHttpServer({
    log,
    clock,
    random,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    acceptTraceparent: true,
    verifyBody: auth.verifyBody,
    tls: shown(),
  });
  limitConnections(server.server, MAX_CONNECTIONS_PER_SOURCE);
  registerAuth(server, auth);
  rejectSecretsOverHttp(server);
  signResponses(server, identity, executorId);
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
    /** Null: metrics and health are on the main listener. */
    monitoring,
    work: certificate === null ? [] : [renewal(certificate)],

    /** Waits for requests in progress. */
    async close(): Promise<void> {
      await Promise.all([server.close(), monitoring?.close()]);
    },
  };
}
