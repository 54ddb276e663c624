/** HTTP routes about the host: the signed inventory, and the public health, readiness, version and update status. */

import { z } from 'zod';
import { Inventory, VersionInfo } from '#shared/api/agent/inventory.ts';
import { UpdateStatus } from '#shared/api/agent/update-status.ts';
import { type ReadinessCheck, registerReadiness } from '#shared/api/readiness.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { InventoryService } from './inventory.service.ts';

const Health = z.object({ status: z.literal('ok') });

export function registerInventoryRoutes(
  server: HttpServer,
  { inventory }: { inventory: InventoryService },
): void {
  const schema = { response: { 200: Inventory } };
  server.get('/v1/inventory', { schema }, () => inventory.read());
}

export type SystemRoutesOptions = {
  executorId: string;
  startedMs: number;
  simulated: boolean;
  readiness: ReadinessCheck;
  updateStatus(): UpdateStatus;
};

export function registerSystemRoutes(server: HttpServer, options: SystemRoutesOptions): void {
  server.get('/healthz', { schema: { response: { 200: Health } } }, async () => ({
    status: 'ok' as const,
  }));

  registerReadiness(server, options.readiness);

  server.get('/version', { schema: { response: { 200: VersionInfo } } }, async () => ({
    version: VERSION,
    executor_id: options.executorId,
    started_ms: options.startedMs,
    simulated: options.simulated,
  }));

  server.get('/update-status', { schema: { response: { 200: UpdateStatus } } }, async () =>
    options.updateStatus(),
  );
}
