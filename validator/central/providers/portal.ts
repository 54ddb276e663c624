/** The provider portal put together: who providers are, their nodes, what those bring in. */
import type { HttpServer } from '#shared/http/server.ts';
import { createChatHandshake } from '../accounts/chat/chat-handshake.ts';
import type { Credentials } from '../accounts/credentials.ts';
import type { MarketOverview } from '../market/executors/market-overview.ts';
import { registerPortalRequestRoutes } from '../market/machine-requests/portal-request.routes.ts';
import type { PortalRequests } from '../market/machine-requests/portal-request.service.ts';
import { registerNoticeRoutes } from '../market/notices/notice.routes.ts';
import type { Notices } from '../market/notices/notice.service.ts';
import type { CentralDeps } from '../platform/central-deps.ts';
import type { Idempotency } from '../platform/idempotency/idempotency.ts';
import { createCentralMinerSync } from './central-miner.service.ts';
import { createNodes } from './node.service.ts';
import { createRenterReference } from './node-pods.ts';
import { registerPortalRoutes, registerSharedConfig } from './portal.routes.ts';
import { createPortalAnswers } from './portal-answer.ts';
import { createProviders } from './provider.service.ts';
import { createProfiles } from './provider-profile.service.ts';
import type { ProviderTokens } from './provider-token.service.ts';
import { createRewardEstimates } from './reward-estimate.ts';

export type PortalParts = {
  idempotency: Idempotency;
  overview: MarketOverview;
  requests: PortalRequests;
  notices: Notices;
};

export type PortalDeps = CentralDeps &
  Pick<Credentials, 'sessions' | 'passwords'> & { providerTokens: ProviderTokens };

/** Registers the routes below /portal. */
export function registerPortal(
  portal: HttpServer,
  deps: PortalDeps,
  { idempotency, overview, requests, notices }: PortalParts,
): void {
  const { sessions, passwords, providerTokens, options } = deps;
  const { db, clock, random, secret, agents } = deps.ports;
  const { chat: platform = null, centralMiner: miner = null } = deps.ports;
  const chat = createChatHandshake({
    ...{ db, clock, random, secret, platform, owners: 'providers' },
    beginsAt: 'GET /auth/me/discord/oauth-url',
  });
  const renterReference = createRenterReference({ secret });
  const { docsUrl = null, nodePlaces = 'public' } = options;
  registerPortalRoutes(portal, {
    ...{ clock, idempotency, providerTokens, overview },
    providers: createProviders({
      ...{ db, clock, random, sessions, passwords },
      validators: options.validators,
    }),
    profiles: createProfiles({ db, clock, chat, miner }),
    nodes: createNodes({ db, clock, random, nodePlaces, renterReference, docsUrl }),
    minerSync: createCentralMinerSync({ db, clock, random, nodePlaces, miner }),
    estimates: createRewardEstimates({ clock, agents, rentalRateOf: overview.rentalRate }),
  });
  const answers = createPortalAnswers({ clock });
  registerPortalRequestRoutes(portal, { answers, requests });
  registerNoticeRoutes(portal, { answers, notices });
  registerSharedConfig(portal);
}
