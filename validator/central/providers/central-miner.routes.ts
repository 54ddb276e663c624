/** Portal routes that synchronise a provider's nodes with the central miner server. */
import type { HttpServer } from '#shared/http/server.ts';
import { providerOf } from '../platform/identity.ts';
import { type PortalAnswers, portalAnswer } from '../platform/portal-answer.ts';
import type { CentralMinerSync } from './central-miner.service.ts';
import { SyncAnswer } from './provider.schemas.ts';

const tags = ['Portal'];
const config = { auth: 'portal' } as const;
const response = { 200: portalAnswer(SyncAnswer) };
const retry = 'Safe: a repeated request changes nothing unless the list has changed meanwhile.';
const pull = {
  tags,
  summary: "Read the provider's nodes from the central miner server",
  description:
    "Adds, changes and removes nodes so that they match the server's list. Nodes with pods are not removed. If no server is configured, nothing changes. Both paths are the same operation.",
  retry,
  response,
};
const push = {
  tags,
  summary: "Send the provider's nodes to the central miner server",
  description:
    "Replaces the server's list by the provider's nodes. If no server is configured, nothing changes.",
  retry,
  response,
};

export type CentralMinerRoutesDeps = { answers: PortalAnswers; minerSync: CentralMinerSync };

export function registerCentralMinerRoutes(portal: HttpServer, deps: CentralMinerRoutesDeps): void {
  const { answers, minerSync } = deps;
  for (const name of ['miner', 'provider']) {
    portal.post(
      `/executors/sync-executor-central-${name}`,
      { config, schema: pull },
      async (request) => answers.one(await minerSync.pull(providerOf(request))),
    );
  }
  portal.post('/executors/sync-executor-miner-portal', { config, schema: push }, async (request) =>
    answers.one(await minerSync.push(providerOf(request))),
  );
}
