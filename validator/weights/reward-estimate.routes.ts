/** The gateway's route to the estimate of rewards: the central API shows it to providers. */
import {
  REWARD_ESTIMATE_PATH,
  RewardQuestion,
  RewardShares,
} from '#shared/api/central/validator-routes.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { RewardEstimates } from './reward-estimate.service.ts';

export function registerRewardEstimateRoutes(server: HttpServer, estimates: RewardEstimates): void {
  server.get(
    REWARD_ESTIMATE_PATH,
    { schema: { querystring: RewardQuestion, response: { 200: RewardShares } } },
    (request) => estimates.estimate(request.query),
  );
}
