/** Market nodes whose agents are honest stand-ins without Docker. Counts the checks that each receives. */
import { createHttpServer } from '#shared/http/server.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { testInventory } from '../../fixtures/host-inventory.ts';
import type { TestMarket } from '../scenes/market-fixture.ts';
import { enrolAgent } from './enrolled-agent.ts';

export type AgentFleet = {
  /** Ids of the executors, in the order in which they were added. */
  ids: string[];
  /** Ids of the executors that received a probe, each listed once, and the last probe request. */
  probed: string[];
  lastProbe(): unknown;
  /** Sets a hook that is awaited before a probe is answered. */
  beforeProbe(hook: (executorId: string) => Promise<void>): void;
  /** Sets whether probe containers run on every agent. */
  setSound(value: boolean): void;
  /** Sets whether the agents close every connection. */
  setAway(value: boolean): void;
  close(): Promise<void>;
};

/** Adds `count` nodes with one GPU each. */
export async function startAgentFleet(market: TestMarket, count: number): Promise<AgentFleet> {
  const log = createLog({ name: 'test', level: 'silent' });
  const { clock } = market;
  const ids: string[] = [];
  const probed: string[] = [];
  let hook = async (_: string): Promise<void> => undefined;
  let isSound = true;
  let lastProbe: unknown = null;
  let isAway = false;

  async function addAgent() {
    const { id } = await market.addNode({ gpus: 1 });
    const agent = createHttpServer({ log, clock, random: systemRandom, bodyLimitBytes: 100_000 });
    agent.addHook('onRequest', (request, reply, done) => {
      if (!isAway) return done();
      void reply.hijack();
      request.raw.destroy();
    });
    enrolAgent(agent, id, market.provider);
    agent.get('/v1/inventory', async () =>
      testInventory(id, { gpus: 1, seed: id, collectedMs: clock.now() }),
    );
    agent.get('/v1/pods', async () => ({ pods: [] }));
    agent.post('/v1/verify', async ({ body }) => {
      probed.push(id);
      lastProbe = body;
      await hook(id);
      const reason = isSound ? null : 'CONTAINER_START_FAILED';
      return { ok: isSound, reason_code: reason, steps: [], simulated: true };
    });
    const port = Number(new URL(await agent.listen({ host: '127.0.0.1', port: 0 })).port);
    const { db } = market.ports;
    await db.updateTable('executors').set({ port }).where('id', '=', id).execute();
    ids.push(id);
    return agent;
  }

  const agents: Awaited<ReturnType<typeof addAgent>>[] = [];
  for (let at = 0; at < count; at += 1) agents.push(await addAgent());
  return {
    ids,
    probed,
    lastProbe: () => lastProbe,
    beforeProbe(given) {
      hook = given;
    },
    setSound(value) {
      isSound = value;
    },
    setAway(value) {
      isAway = value;
    },
    async close() {
      await Promise.all(agents.map((agent) => agent.close()));
    },
  };
}
