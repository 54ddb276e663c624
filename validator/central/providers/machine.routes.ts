/** Routes that require no credential: the machine catalogue, reward estimates, the shared configuration. */
import type { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import {
  MACHINE_CATALOGUE,
  MAX_PRICE_RATE,
  MIN_PRICE_RATE,
} from '../market/executors/machine-catalogue.ts';
import { MachineResponse } from '../market/executors/market-overview.schemas.ts';
import type { MarketOverview } from '../market/executors/market-overview.ts';
import { PLATFORM_FEE_RATE } from '../money/ledger/shares.ts';
import { type PortalAnswers, pageOf, portalAnswer, portalList } from '../platform/portal-answer.ts';
import { MachinePageQuery, MachineQuery, RewardEstimate, SharedConfig } from './machine.schemas.ts';
import type { RewardEstimates } from './reward-estimate.ts';

const tags = ['Portal'];
const config = { auth: 'none' } as const;

export type MachineRoutesDeps = {
  answers: PortalAnswers;
  overview: Pick<MarketOverview, 'machines'>;
  estimates: RewardEstimates;
};

export function registerMachineRoutes(portal: HttpServer, deps: MachineRoutesDeps): void {
  const { answers, overview, estimates } = deps;
  portal.get(
    '/machines',
    {
      config,
      schema: {
        tags,
        summary: 'List GPU types',
        description:
          'Returns every GPU type with its reference price, the number of GPUs, and the fraction that is rented.',
        querystring: MachinePageQuery,
        response: { 200: portalList(MachineResponse) },
      },
    },
    async ({ query }) => answers.page(pageOf(await overview.machines(), query), query),
  );
  portal.get(
    '/machines/estimated-rewards',
    {
      config,
      schema: {
        tags,
        summary: 'Estimate the income of a node',
        description:
          'Returns the expected share of rewards and the rental income of a node, which need not exist yet. The values are estimates from the present market.',
        errors: {
          bad_request: 'the GPU type is unknown; the message lists the known types',
          upstream_unavailable: 'no validator responds',
        },
        querystring: MachineQuery,
        response: { 200: portalAnswer(RewardEstimate) },
      },
    },
    async ({ query }) => answers.one(await estimates.estimate(query)),
  );
}

/** Registers GET /v1/shared-config. The response is the same below /api, below /portal and at the origin. */
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
      schema: {
        tags: ['General'],
        summary: 'Read reference prices and fees',
        description:
          'Returns the reference price of each GPU type, the allowed range of prices and the fee. The response is the same below `/api`, below `/portal` and at the origin.',
        response: { 200: SharedConfig },
      },
    },
    async () => shared,
  );
}
