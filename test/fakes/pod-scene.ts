/** A renter and a verified node of two GPUs, and what tests of pods do with them. */
import { createTestMarket, type TestMarketOverrides } from './market-fixture.ts';

export type PodScene = Awaited<ReturnType<typeof createPodScene>>;

/** Close it with `close()`. */
export async function createPodScene(overrides: TestMarketOverrides = {}) {
  const market = await createTestMarket(overrides);
  const node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  const account = await market.renter();
  const host = market.agents.host(node.id);

  /** A request of the renter. */
  function call(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: object) {
    const sent = body === undefined ? {} : { body: body as Record<string, unknown> };
    return market.call(method, path, { headers: account.key, ...sent });
  }

  /** Rents one GPU; the node has not heard of it yet. */
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
    /** The same, and the node has taken it. */
    async running(body: Record<string, unknown> = {}): Promise<string> {
      const id = await rentOne(body);
      await market.sync();
      return id;
    },
    /** The pod's row, or what is said in its place. */
    pod: async (id: string) => (await call('GET', `/pods/${id}`)).body,
    events: async (id: string) => (await call('GET', `/pods/${id}/events`)).body,
    remove: (id: string) => call('DELETE', `/pods/${id}`),
    /** Lets `ms` go by and does what is then due. */
    async later(ms = 1_000): Promise<void> {
      await market.clock.advance(ms);
      await market.sync();
    },
    async freeGpus(): Promise<number> {
      const slots = await market.ports.db.selectFrom('gpu_slots').select('pod_id').execute();
      return slots.filter((slot) => slot.pod_id === null).length;
    },
    /** USD that the renter's pods hold. */
    held: async () => (await call('GET', '/users/me')).body.held,
    close: market.close,
  };
}
