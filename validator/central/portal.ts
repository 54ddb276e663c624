/** The provider portal put together: who providers are, their nodes, what those bring in. */
import type { HttpServer } from '#shared/http/server.ts';
import { createChatHandshake } from './chat/chat-handshake.ts';
import type { MarketOverview } from './executors/market-overview.ts';
import type { CentralDeps } from './ports.ts';
import { createCentralMinerSync } from './providers/central-miner.service.ts';
import { createNodes } from './providers/node.service.ts';
import { createRenterReference } from './providers/node-pods.ts';
import { registerPortalRoutes, registerSharedConfig } from './providers/portal.routes.ts';
import { createProviders } from './providers/provider.service.ts';
import { createProfiles } from './providers/provider-profile.service.ts';
import { createRewardEstimates } from './providers/reward-estimate.ts';
import type { Idempotency } from './rentals/idempotency.ts';

/** Registers the routes below /portal. */
export function registerPortal(
  portal: HttpServer,
  deps: CentralDeps,
  { idempotency, overview }: { idempotency: Idempotency; overview: MarketOverview },
): void {
  const { sessions, passwords, providerTokens, options } = deps;
  const { db, clock, random, secret, agents } = deps.ports;
  const { chat: platform = null, centralMiner: miner = null } = deps.ports;
  const chat = createChatHandshake({
    ...{ db, clock, random, secret, platform, owners: 'providers' },
    beginsAt: 'GET /auth/me/discord/oauth-url',
  });
  const renterReference = createRenterReference({ secret });
  const docsUrl = options.docsUrl ?? null;
  registerPortalRoutes(portal, {
    ...{ clock, idempotency, providerTokens, overview },
    providers: createProviders({ db, clock, random, sessions, passwords }),
    profiles: createProfiles({ db, clock, chat, miner }),
    nodes: createNodes({ db, clock, random, renterReference, docsUrl }),
    minerSync: createCentralMinerSync({ db, clock, random, miner }),
    estimates: createRewardEstimates({ clock, agents, rentalRateOf: overview.rentalRate }),
  });
  registerSharedConfig(portal);
}
