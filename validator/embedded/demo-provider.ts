/** Demo provider: registers its executors through the portal, with a signed login. */

import { existsSync } from 'node:fs';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { createPortalClient, logInToPortal } from '../provider-cli/portal-client.ts';
import type { Home } from './home.ts';

/** Invented places of simulated nodes. */
const SIMULATED_PLACES = [
  { country_code: 'DE', region: 'HE', city: 'Frankfurt (simulated)', lat: 50.11, lon: 8.68 },
  { country_code: 'US', region: 'VA', city: 'Ashburn (simulated)', lat: 39.04, lon: -77.49 },
  { country_code: 'JP', region: '13', city: 'Tokyo (simulated)', lat: 35.68, lon: 139.77 },
] as const;

/** Address and GPUs of a node. */
export type Offer = { ip: string; port: number; gpuType: string; gpuCount: number };

export type DemoProvider = Awaited<ReturnType<typeof logInProvider>>;

/** `portalUrl` ends with `/portal`. */
export async function logInProvider(portalUrl: string, signer: Signer, clock: Clock) {
  const token = await logInToPortal(portalUrl, signer, clock);
  const portal = createPortalClient({ portalUrl, token });

  return {
    /** Returns the id of the node at this address; registers a new one if it is missing or has other GPUs. */
    async ensureNode(offer: Offer): Promise<string> {
      const present = (await portal.nodes()).find(
        (node) =>
          node.executor_ip_address === offer.ip && node.executor_ip_port === String(offer.port),
      );
      const same = present?.gpu_type === offer.gpuType && present.gpu_count === offer.gpuCount;
      if (present !== undefined && same) return present.id;
      if (present !== undefined) await portal.removeNode(present.id);
      const { id } = await portal.addNode({
        gpu_type: offer.gpuType,
        ip_address: offer.ip,
        port: offer.port,
        gpu_count: offer.gpuCount,
      });
      return id;
    },
    /** Enters an invented place, marked as simulated, unless a place was entered before. */
    async ensureSimulatedPlace(id: string, index: number): Promise<void> {
      if ((await portal.place(id)).entered !== null) return;
      const place = SIMULATED_PLACES[index % SIMULATED_PLACES.length];
      if (place !== undefined) await portal.enterPlace(id, place);
    },
    createTicket: portal.createTicket,
    removeNode: portal.removeNode,
    listNodes: portal.nodes,
  };
}

export type StaleNodesDeps = {
  provider: {
    listNodes(): Promise<readonly { id: string }[]>;
    removeNode(id: string): Promise<void>;
  };
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
