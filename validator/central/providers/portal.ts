/** Composes the provider portal: providers, their nodes, notices, machine requests and reward estimates. */
import type { HttpServer } from '#shared/http/server.ts';
import { createChatHandshake } from '../accounts/chat/chat-handshake.ts';
import type { Credentials } from '../accounts/credentials.ts';
import type { MarketOverview } from '../market/executors/market-overview.ts';
import type { PortalRequests } from '../market/machine-requests/portal-request.service.ts';
import type { MetricHistories } from '../market/metric-history/metric-history.service.ts';
import type { Notices } from '../market/notices/notice.service.ts';
import type { CentralDeps } from '../platform/central-deps.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import { createPortalAnswers } from '../platform/portal-answer.ts';
import { registerCentralMinerRoutes } from './central-miner.routes.ts';
import { createCentralMinerSync } from './central-miner.service.ts';
import { registerMachineRoutes, registerSharedConfig } from './machine.routes.ts';
import { registerPortalRequestRoutes } from './machine-request.routes.ts';
import { registerNodeRoutes } from './node.routes.ts';
import { createNodes } from './node.service.ts';
import { registerNodeMetrics } from './node-metrics.routes.ts';
import { createRenterReference } from './node-response.ts';
import { registerNoticeRoutes } from './notice.routes.ts';
import { registerProviderRoutes } from './provider.routes.ts';
import { createProviders } from './provider.service.ts';
import { createProfiles } from './provider-profile.service.ts';
import type { ProviderTokens } from './provider-token.service.ts';
import { createRewardEstimates } from './reward-estimate.ts';

export type PortalParts = {
  idempotency: Idempotency;
  overview: MarketOverview;
  requests: PortalRequests;
  notices: Notices;
  metricHistories: MetricHistories;
};

export type PortalDeps = CentralDeps &
  Pick<Credentials, 'sessions' | 'logInTickets' | 'passwords'> & { providerTokens: ProviderTokens };

/** Registers the routes below /portal. */
export function registerPortal(portal: HttpServer, deps: PortalDeps, parts: PortalParts): void {
  const { sessions, logInTickets, passwords, providerTokens, options } = deps;
  const { idempotency, overview, requests, notices, metricHistories } = parts;
  const { db, clock, random, secret, agents, addresses = null } = deps.ports;
  const { chat: platform = null, centralMiner: miner = null } = deps.ports;
  const { docsUrl = null, validators } = options;
  const { nodePlaces: places = 'public', allowsLoopback: loopback = false } = options;
  const nodePlaces = { places, loopback };
  const answers = createPortalAnswers({ clock });
  const chat = createChatHandshake({
    db,
    clock,
    random,
    secret,
    platform,
    owners: 'providers',
    beginsAt: 'GET /auth/me/discord/oauth-url',
  });
  const renterReference = createRenterReference({ secret });
  registerProviderRoutes(portal, {
    answers,
    providers: createProviders({
      db,
      clock,
      random,
      sessions,
      logInTickets,
      passwords,
      validators,
    }),
    profiles: createProfiles({ db, clock, chat, minerAddress: miner ?? agents.gateway }),
    providerTokens,
  });
  registerCentralMinerRoutes(portal, {
    answers,
    minerSync: createCentralMinerSync({ db, clock, random, nodePlaces, miner }),
  });
  registerNodeRoutes(portal, {
    clock,
    idempotency,
    answers,
    nodes: createNodes({ db, clock, random, nodePlaces, renterReference, docsUrl, addresses }),
  });
  registerNodeMetrics(portal, { db, answers, histories: metricHistories });
  registerMachineRoutes(portal, {
    answers,
    overview,
    estimates: createRewardEstimates({ clock, agents, rentalRateOf: overview.rentalRate }),
  });
  registerPortalRequestRoutes(portal, { answers, requests });
  registerNoticeRoutes(portal, { answers, notices });
  registerSharedConfig(portal);
}
