/** GET /v1/speed-test, as a WebSocket. */
import {
  SPEED_MESSAGE_BYTES,
  SPEED_TEST_PATH,
  SpeedTestQuery,
} from '#shared/api/agent/host-checks.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { upgradeRequired } from '#shared/http/upgrade.ts';
import type { SpeedTests } from './speed-test.service.ts';

/** Registers it; a test under way ends when `stopping` aborts. */
export function registerSpeedTestRoutes(
  server: HttpServer,
  { speedTests, stopping }: { speedTests: SpeedTests; stopping: AbortSignal },
): void {
  const config = { websocket: true } as const;
  const schema = { querystring: SpeedTestQuery };
  server.get(SPEED_TEST_PATH, { config, schema }, async (request, reply) => {
    if (request.upgrade === null) throw upgradeRequired();
    const seat = speedTests.reserve(request.query.executor_id);
    try {
      const socket = await request.upgrade.accept(reply, { maxMessageBytes: SPEED_MESSAGE_BYTES });
      await speedTests.serve(socket, stopping);
    } finally {
      seat.leave();
    }
    return reply;
  });
}
