/** Demo provider: registers its executors through the portal, with a signed login. */

import { existsSync } from 'node:fs';
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Signer, toHex } from '#shared/signing/sr25519.ts';
import type { Home } from './home.ts';
import { callJson } from './json-call.ts';

/** Invented places of simulated nodes. */
const SIMULATED_PLACES = [
  { country_code: 'DE', region: 'HE', city: 'Frankfurt (simulated)', lat: 50.11, lon: 8.68 },
  { country_code: 'US', region: 'VA', city: 'Ashburn (simulated)', lat: 39.04, lon: -77.49 },
  { country_code: 'JP', region: '13', city: 'Tokyo (simulated)', lat: 35.68, lon: 139.77 },
] as const;

/** Address and GPUs of a node. */
export type Offer = { ip: string; port: number; gpuType: string; gpuCount: number };

const LoggedIn = z.object({ data: z.object({ token: z.string() }) });
const Node = z.object({
  id: z.uuid(),
  executor_ip_address: z.string(),
  executor_ip_port: z.string(),
  gpu_type: z.string(),
  gpu_count: z.int(),
  status: z.string(),
  blocking_reasons: z.array(z.object({ code: z.string(), message: z.string() })),
});
const NodeList = z.object({ data: z.array(Node) });
const PlaceAnswer = z.object({ data: z.object({ entered: z.unknown().nullable() }) });
const NodeAnswer = z.object({ data: Node });
const MAX_NODES = 100;

export type DemoProvider = Awaited<ReturnType<typeof logInProvider>>;

/** `portalUrl` ends with `/portal`. */
export async function logInProvider(portalUrl: string, signer: Signer, clock: Clock) {
  const message = String(Math.floor(clock.now() / 1000));
  const signature = toHex(await signer.sign(new TextEncoder().encode(message)));
  const { data } = await callJson(LoggedIn, {
    method: 'POST',
    url: `${portalUrl}/auth/login-flexible`,
    body: { miner_hotkey: signer.hotkey, message, signature },
  });
  const headers = { authorization: `Bearer ${data.token}` };

  async function listNodes() {
    const url = `${portalUrl}/executors?page=1&limit=${MAX_NODES}`;
    return (await callJson(NodeList, { method: 'GET', url, headers })).data;
  }

  return {
    /** Returns the id of the node at this address; registers a new one if it is missing or has other GPUs. */
    async ensureNode(offer: Offer): Promise<string> {
      const present = (await listNodes()).find(
        (node) =>
          node.executor_ip_address === offer.ip && node.executor_ip_port === String(offer.port),
      );
      const same = present?.gpu_type === offer.gpuType && present.gpu_count === offer.gpuCount;
      if (present !== undefined && same) return present.id;
      if (present !== undefined) await this.removeNode(present.id);
      const { data: node } = await callJson(NodeAnswer, {
        method: 'POST',
        url: `${portalUrl}/executors`,
        headers,
        body: {
          gpu_type: offer.gpuType,
          ip_address: offer.ip,
          port: offer.port,
          gpu_count: offer.gpuCount,
        },
      });
      return node.id;
    },
    /** Enters an invented place, marked as simulated, unless a place was entered before. */
    async ensureSimulatedPlace(id: string, index: number): Promise<void> {
      const url = `${portalUrl}/executors/${id}/location`;
      const { data } = await callJson(PlaceAnswer, { method: 'GET', url, headers });
      if (data.entered !== null) return;
      const body = SIMULATED_PLACES[index % SIMULATED_PLACES.length];
      await callJson(PlaceAnswer, { method: 'POST', url, headers, body });
    },
    async removeNode(id: string): Promise<void> {
      const url = `${portalUrl}/executors/${id}`;
      await callJson(z.unknown(), { method: 'DELETE', url, headers });
    },
    listNodes,
  };
}

export type StaleNodesDeps = {
  provider: Pick<DemoProvider, 'listNodes' | 'removeNode'>;
  home: Pick<Home, 'agent'>;
  log: Log;
};

/**
 * Withdraws nodes of earlier runs that no agent serves. Nodes without an agent folder in this home were added by a
 * person and are kept.
 */
export async function withdrawStaleNodes(
  { provider, home, log }: StaleNodesDeps,
  served: ReadonlySet<string>,
): Promise<void> {
  for (const { id } of await provider.listNodes()) {
    if (served.has(id) || !existsSync(home.agent(id))) continue;
    // A node with live pods cannot be removed.
    await provider.removeNode(id).then(
      () => log.info({ executor: id }, 'node of an earlier run withdrawn'),
      (error: unknown) =>
        log.warn({ executor: id, err: error }, 'node of an earlier run not withdrawn'),
    );
  }
}
