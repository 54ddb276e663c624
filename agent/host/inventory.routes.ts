/** GET /v1/inventory. */
import { Inventory } from '#shared/api/agent/inventory.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { InventoryService } from './inventory.service.ts';

export function registerInventoryRoutes(
  server: HttpServer,
  { inventory }: { inventory: InventoryService },
): void {
  const schema = { response: { 200: Inventory } };
  server.get('/v1/inventory', { schema }, () => inventory.read());
}
