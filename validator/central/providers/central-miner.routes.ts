/** The portal's synchronisation with the central miner server (contract 10). */
import type { HttpServer } from '#shared/http/server.ts';
import { providerOf } from '../platform/identity.ts';
import type { CentralMinerSync } from './central-miner.service.ts';
import type { PortalAnswers } from './portal-answer.ts';
import { portalAnswer, SyncAnswer } from './provider.schemas.ts';

const tags = ['Portal'];
const config = { auth: 'portal' } as const;
const schema = { tags, response: { 200: portalAnswer(SyncAnswer) } };

export type CentralMinerRoutesDeps = { answers: PortalAnswers; minerSync: CentralMinerSync };

export function registerCentralMinerRoutes(portal: HttpServer, deps: CentralMinerRoutesDeps): void {
  const { answers, minerSync } = deps;
  for (const name of ['miner', 'provider']) {
    portal.post(`/executors/sync-executor-central-${name}`, { config, schema }, async (request) =>
      answers.one(await minerSync.pull(providerOf(request))),
    );
  }
  portal.post('/executors/sync-executor-miner-portal', { config, schema }, async (request) =>
    answers.one(await minerSync.push(providerOf(request))),
  );
}
