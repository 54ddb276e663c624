/** The provider portal (contract 10) and the shared configuration that is public everywhere. */
import type { z } from 'zod';
import { naiveUtc } from '#shared/clock.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { providerOf } from '../auth/identity.ts';
import type { Db } from '../db/tables.ts';
import { answerOnce, type OnceDeps } from '../rentals/once.ts';
import {
  MACHINE_CATALOGUE,
  MAX_PRICE_RATE,
  MIN_PRICE_RATE,
  PLATFORM_FEE_RATE,
} from './machine-catalogue.ts';
import type { Nodes } from './node.service.ts';
import {
  AddNode,
  NodeListQuery,
  NodeParams,
  PortalLogin,
  PortalNode,
  PortalSession,
  ProviderProfile,
  portalAnswer,
  portalList,
  SharedConfig,
  Verification,
} from './provider.schemas.ts';
import type { Providers } from './provider.service.ts';

const tags = ['Portal'];
const config = { auth: 'portal' } as const;

export type PortalRoutesDeps = OnceDeps & { providers: Providers; nodes: Nodes };

/** Registers the routes below /portal. */
export function registerPortalRoutes(portal: HttpServer, deps: PortalRoutesDeps): void {
  const { clock, providers, nodes } = deps;
  const answer = <Data>(data: Data) => ({
    success: true as const,
    data,
    timestamp: naiveUtc(clock.now()),
  });
  portal.post(
    '/auth/login-flexible',
    {
      config: { auth: 'none' },
      schema: { tags, body: PortalLogin, response: { 200: portalAnswer(PortalSession) } },
    },
    async (request) => answer(await providers.logIn(request.body)),
  );
  portal.get(
    '/auth/me',
    { config, schema: { tags, response: { 200: ProviderProfile } } },
    (request) => providers.profile(providerOf(request)),
  );
  portal.post('/auth/logout', { config, schema: { tags } }, async (request) => {
    await providers.logOut(providerOf(request));
    return answer({});
  });
  portal.post(
    '/executors',
    {
      config: { ...config, once: 'node-addition' },
      schema: { tags, body: AddNode, response: { 200: portalAnswer(PortalNode) } },
    },
    async (request, reply) => {
      const caller = providerOf(request);
      const schema = portalAnswer(PortalNode);
      const effects = async (tx: Db) => answer(await nodes.addIn(tx, caller, request.body));
      await answerOnce(deps, { request, reply }, { schema, effects });
      return reply;
    },
  );
  portal.get(
    '/executors',
    {
      config,
      schema: { tags, querystring: NodeListQuery, response: { 200: portalList(PortalNode) } },
    },
    async (request) => {
      const { page, limit } = request.query;
      const { items, total } = await nodes.page(providerOf(request), request.query);
      const pagination = { page, limit, total, total_pages: Math.ceil(total / limit) };
      return { ...answer(items), total, page, limit, pagination };
    },
  );
  portal.get(
    '/executors/:id',
    { config, schema: { tags, params: NodeParams, response: { 200: portalAnswer(PortalNode) } } },
    async (request) => answer(await nodes.get(providerOf(request), request.params.id)),
  );
  portal.delete(
    '/executors/:id',
    { config, schema: { tags, params: NodeParams, response: { 200: portalAnswer(PortalNode) } } },
    async (request) => answer(await nodes.remove(providerOf(request), request.params.id)),
  );
  portal.get(
    '/executors/:id/verification',
    { config, schema: { tags, params: NodeParams, response: { 200: portalAnswer(Verification) } } },
    async (request) => answer(await nodes.verification(providerOf(request), request.params.id)),
  );
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
