/** Typed client of the provider portal, for the provider's command line and for the demo provider of `npm start`. */
import { z } from 'zod';
import { callJson } from '#shared/http/json-call.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { type Signer, toHex } from '#shared/signing/sr25519.ts';
import { type EnterPlace, NodeLocation } from '../central/market/places/place.schemas.ts';
import { PortalNode, Verification } from '../central/providers/node.schemas.ts';
import { PortalSession } from '../central/providers/provider.schemas.ts';

/** Page size of the node list, the portal's maximum. */
const PAGE_NODES = 1_000;

/** The node's GPUs, address and price. Without a price, the portal uses the reference price. */
export type NodeOffer = {
  ip_address: string;
  port: number;
  gpu_type: string;
  gpu_count: number;
  price_per_gpu?: number;
};

/** Maintenance of some minutes, or a removal. `starting_at` is an ISO 8601 time with an offset. */
export type Notice = { starting_at: string; reason?: string } & (
  | { period_in_minute: number }
  | { permanent_removal: true }
);

const NodeAnswer = z.object({ data: PortalNode });
const NodePage = z.object({ data: z.array(PortalNode), total: z.int() });
const ApiVersion = z.object({ validator_hotkey: Hotkey });
const TicketAnswer = z.object({ data: z.object({ ticket: z.string() }) });
const NoticeAnswer = z.object({ data: PortalNode.shape.notice_period });

/** Signs the present time and returns the session token, valid for 7 days. `portalUrl` ends with `/portal`. */
export async function logInToPortal(
  portalUrl: string,
  signer: Signer,
  clock: Clock,
): Promise<string> {
  const message = String(Math.floor(clock.now() / 1_000));
  const signature = toHex(await signer.sign(new TextEncoder().encode(message)));
  const { data } = await callJson(z.object({ data: PortalSession }), {
    method: 'POST',
    url: `${portalUrl}/auth/login-flexible`,
    body: { miner_hotkey: signer.hotkey, message, signature },
  });
  return data.token;
}

export type PortalClient = ReturnType<typeof createPortalClient>;

/** Calls reject with CallRefused or CallFailed. */
export function createPortalClient({ portalUrl, token }: { portalUrl: string; token: string }) {
  const headers = { authorization: `Bearer ${token}` };

  function call<T>(
    schema: z.ZodType<T>,
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    body?: unknown,
  ): Promise<T> {
    const url = `${portalUrl}/executors${path}`;
    return callJson(schema, { method, url, headers, ...(body === undefined ? {} : { body }) });
  }

  const pathOf = (id: string) => `/${encodeURIComponent(id)}`;

  return {
    /** Lists all nodes of the provider. */
    async nodes(): Promise<PortalNode[]> {
      const nodes: PortalNode[] = [];
      for (let page = 1; ; page += 1) {
        const { data, total } = await call(NodePage, 'GET', `?page=${page}&limit=${PAGE_NODES}`);
        nodes.push(...data);
        if (data.length === 0 || nodes.length >= total) return nodes;
      }
    },
    node: async (id: string): Promise<PortalNode> =>
      (await call(NodeAnswer, 'GET', pathOf(id))).data,
    verification: async (id: string): Promise<Verification> =>
      (await call(z.object({ data: Verification }), 'GET', `${pathOf(id)}/verification`)).data,
    addNode: async (offer: NodeOffer): Promise<PortalNode> =>
      (await call(NodeAnswer, 'POST', '', offer)).data,
    async removeNode(id: string): Promise<void> {
      await call(z.unknown(), 'DELETE', pathOf(id));
    },
    setPrice: async (id: string, price_per_gpu: number): Promise<PortalNode> =>
      (await call(NodeAnswer, 'POST', `${pathOf(id)}/update-price`, { price_per_gpu })).data,
    announce: async (id: string, notice: Notice) =>
      (await call(NoticeAnswer, 'POST', `${pathOf(id)}/notice-period`, notice)).data,
    withdrawNotice: async (id: string) =>
      (await call(NoticeAnswer, 'DELETE', `${pathOf(id)}/notice-period`)).data,
    /** Creates a single-use ticket, which logs a browser in to the provider's pages within an hour. */
    async createTicket(): Promise<string> {
      const url = `${portalUrl}/auth/tickets`;
      return (await callJson(TicketAnswer, { method: 'POST', url, headers })).data.ticket;
    },
    /** Returns the hotkey of the validator that agents must trust. */
    async validatorHotkey(): Promise<Hotkey> {
      const url = portalUrl.replace(/portal$/, 'api/version');
      return (await callJson(ApiVersion, { method: 'GET', url })).validator_hotkey;
    },
    place: async (id: string): Promise<NodeLocation> =>
      (await call(z.object({ data: NodeLocation }), 'GET', `${pathOf(id)}/location`)).data,
    async enterPlace(id: string, place: EnterPlace): Promise<void> {
      await call(z.unknown(), 'POST', `${pathOf(id)}/location`, place);
    },
  };
}
