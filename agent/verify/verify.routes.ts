/** Routes of the checks: /v1/verify, /v1/egress-checks, /v1/image-checks, /v1/port-checks, /v1/speed-test. */
import {
  EgressCheckRequest,
  EgressCheckResult,
  ImageCheckRequest,
  ImageCheckResult,
  PortCheckOpened,
  PortCheckRequest,
  SPEED_MESSAGE_BYTES,
  SPEED_TEST_PATH,
  SpeedTestQuery,
} from '#shared/api/agent/host-checks.ts';
import { VerifyRequest, VerifyResult } from '#shared/api/agent/inventory.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { upgradeRequired } from '#shared/http/upgrade.ts';
import type { EgressCheckService } from './egress-check.service.ts';
import type { ImageChecks } from './image-check.service.ts';
import type { PortCheckService } from './port-check.service.ts';
import type { SpeedTests } from './speed-test.service.ts';
import type { VerifyService } from './verify.service.ts';

export function registerVerifyRoutes(
  server: HttpServer,
  { verify }: { verify: Pick<VerifyService, 'verify'> },
): void {
  const schema = { body: VerifyRequest, response: { 200: VerifyResult } };
  server.post('/v1/verify', { schema }, (request) => verify.verify(request.body));
}

export function registerEgressCheckRoutes(
  server: HttpServer,
  { egressChecks }: { egressChecks: Pick<EgressCheckService, 'check'> },
): void {
  const schema = { body: EgressCheckRequest, response: { 200: EgressCheckResult } };
  server.post('/v1/egress-checks', { schema }, (request) => egressChecks.check(request.body));
}

export function registerImageCheckRoutes(
  server: HttpServer,
  { imageChecks }: { imageChecks: Pick<ImageChecks, 'check'> },
): void {
  const schema = { body: ImageCheckRequest, response: { 200: ImageCheckResult } };
  server.post('/v1/image-checks', { schema }, (request) => imageChecks.check(request.body));
}

/** Registers the port check. `stopping` closes the ports. */
export function registerPortCheckRoutes(
  server: HttpServer,
  { portChecks, stopping }: { portChecks: PortCheckService; stopping: AbortSignal },
): void {
  const schema = { body: PortCheckRequest, response: { 200: PortCheckOpened } };
  server.post('/v1/port-checks', { schema }, (request) => portChecks.open(request.body, stopping));
}

/** Registers the speed test. `stopping` ends a running test. */
export function registerSpeedTestRoutes(
  server: HttpServer,
  { speedTests, stopping }: { speedTests: SpeedTests; stopping: AbortSignal },
): void {
  const config = { websocket: true } as const;
  const schema = { querystring: SpeedTestQuery };
  server.get(SPEED_TEST_PATH, { config, schema }, async (request, reply) => {
    if (request.upgrade === null) throw upgradeRequired();
    const slot = speedTests.reserve(request.query.executor_id);
    try {
      const socket = await request.upgrade.accept(reply, { maxMessageBytes: SPEED_MESSAGE_BYTES });
      await speedTests.serve(socket, stopping);
    } finally {
      slot.release();
    }
    return reply;
  });
}
