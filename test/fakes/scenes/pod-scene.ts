/** A renter and a verified node with two GPUs. */
import type { PodChange, PodView } from '#shared/api/agent/pod.ts';
import type { FakeHost } from '../agents/fake-agents.ts';
import { createTestMarket, type TestMarketOverrides } from './market-fixture.ts';
import { openHolds } from './wallet.ts';

export type PodScene = Awaited<ReturnType<typeof createPodScene>>;

/** Creates the scene. The caller must call `close()`. */
export async function createPodScene(overrides: TestMarketOverrides = {}) {
  const market = await createTestMarket(overrides);
  const node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  const account = await market.renter();
  const host = market.agents.host(node.id);

  /** Sends a request as the renter. */
  function call(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object) {
    const sent = body === undefined ? {} : { body: body as Record<string, unknown> };
    return market.call(method, path, { headers: account.key, ...sent });
  }

  /** Rents one GPU. The pod is not sent to the node yet. */
  async function rentOne(body: Record<string, unknown> = {}): Promise<string> {
    const rented = await market.rent(account, node.id, { gpu_count: 1, ...body });
    if (rented.status !== 200) throw new Error(JSON.stringify(rented.body));
    return rented.body.id;
  }

  return {
    market,
    node,
    account,
    host,
    call,
    rentOne,
    /** Rents one GPU and runs the jobs that send the pod to the node. */
    async running(body: Record<string, unknown> = {}): Promise<string> {
      const id = await rentOne(body);
      await market.sync();
      return id;
    },
    /** Returns the pod, or the error body if the request fails. */
    pod: async (id: string) => (await call('GET', `/pods/${id}`)).body,
    events: async (id: string) => (await call('GET', `/pods/${id}/events`)).body,
    post: (id: string, action: string, body?: object) =>
      call('POST', `/pods/${id}/${action}`, body),
    /** Creates a template of the renter. */
    async template(body: object = {}) {
      const sent = { name: 'own', docker_image: 'own/image', ...body };
      const made = await call('POST', '/templates', sent);
      if (made.status !== 200) throw new Error(JSON.stringify(made.body));
      return made.body;
    },
    remove: (id: string) => call('DELETE', `/pods/${id}`),
    /** Advances the clock by `ms` and runs the work that is due. */
    async later(ms = 1_000): Promise<void> {
      await market.clock.advance(ms);
      await market.sync();
    },
    async freeGpus(): Promise<number> {
      const slots = await market.ports.db.selectFrom('gpu_slots').select('pod_id').execute();
      return slots.filter((slot) => slot.pod_id === null).length;
    },
    /** Micro-dollars held for each pod of all accounts. */
    holds: async () => [...(await openHolds(market.ports.db)).values()],
    /** USD held for the renter's pods. */
    held: async () => (await call('GET', '/users/me')).body.held,
    close: market.close,
  };
}

/** Id of the container that a pod change replaces. */
const OLD = 'a'.repeat(64);

/** Returns a host's report about a pod change to the newest generation that the host has received. */
export function changing(
  host: FakeHost,
  podId: string,
  stage: PodChange['stage'],
  cause: Partial<PodChange> = {},
): Partial<PodView> {
  const generation = host.specs.get(podId)?.generation ?? 0;
  const change = { generation, stage, reason: null, message: '', ...cause };
  return { generation, observed_generation: generation - 1, container_id: OLD, change };
}
