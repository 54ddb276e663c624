/** GET /machines and what they bring in, open to everybody (contract 10). */
import type { HttpServer } from '#shared/http/server.ts';
import { MachineResponse } from '../market/executors/executor.schemas.ts';
import type { MarketOverview } from '../market/executors/market-overview.ts';
import { MachineQuery, RewardEstimate } from './machine.schemas.ts';
import { type PortalAnswers, pageOf } from './portal-answer.ts';
import { MachinePageQuery, portalAnswer, portalList } from './provider.schemas.ts';
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
      schema: { tags, querystring: MachineQuery, response: { 200: portalAnswer(RewardEstimate) } },
    },
    async ({ query }) => answers.one(await estimates.estimate(query)),
  );
}
