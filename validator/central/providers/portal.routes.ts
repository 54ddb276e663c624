/** The provider portal put together (contract 10), and the shared configuration that is public everywhere. */
import type { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import {
  MACHINE_CATALOGUE,
  MAX_PRICE_RATE,
  MIN_PRICE_RATE,
} from '../market/executors/machine-catalogue.ts';
import { PLATFORM_FEE_RATE } from '../money/ledger/shares.ts';
import { type CentralMinerRoutesDeps, registerCentralMinerRoutes } from './central-miner.routes.ts';
import { type MachineRoutesDeps, registerMachineRoutes } from './machine.routes.ts';
import { type NodeRoutesDeps, registerNodeRoutes } from './node.routes.ts';
import { createPortalAnswers } from './portal-answer.ts';
import { type ProviderRoutesDeps, registerProviderRoutes } from './provider.routes.ts';
import { SharedConfig } from './provider.schemas.ts';

export type PortalRoutesDeps = Omit<
  ProviderRoutesDeps & NodeRoutesDeps & CentralMinerRoutesDeps & MachineRoutesDeps,
  'answers'
>;

/** Registers the routes below /portal. */
export function registerPortalRoutes(portal: HttpServer, given: PortalRoutesDeps): void {
  const deps = { ...given, answers: createPortalAnswers(given) };
  registerProviderRoutes(portal, deps);
  registerCentralMinerRoutes(portal, deps);
  registerNodeRoutes(portal, deps);
  registerMachineRoutes(portal, deps);
}

/** GET /v1/shared-config: the same below /api, below /portal and at the origin. */
export function registerSharedConfig(server: HttpServer): void {
  const prices = MACHINE_CATALOGUE.map(({ name, usdPerGpuHour }) => [name, usdPerGpuHour]);
  const shared: z.output<typeof SharedConfig> = {
    machine_prices: Object.fromEntries(prices),
    machine_min_price_rate: MIN_PRICE_RATE,
    machine_max_price_rate: MAX_PRICE_RATE,
    platform_fee_rate: PLATFORM_FEE_RATE,
  };
  server.get(
    '/v1/shared-config',
    {
      config: { auth: 'none' },
      schema: { tags: ['General'], response: { 200: SharedConfig } },
    },
    async () => shared,
  );
}
