/** An agent that answers checks over HTTP with the agent's code, as a conduct scripts it. */
import { createServer } from 'node:net';
import type { WebSocket } from 'ws';
import { ChallengeRequest } from '#shared/api/agent/challenges.ts';
import { PortCheckRequest, portAnswer } from '#shared/api/agent/host-checks.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { registerChallengeRoutes } from '../../../agent/verify/challenges/challenge.routes.ts';
import { createChallengeService } from '../../../agent/verify/challenges/challenge.service.ts';
import { createDeviceChallenges } from '../../../agent/verify/challenges/device-challenges.ts';
import { work } from '../../../agent/verify/challenges/proof.tasks.ts';
import type { RunProof } from '../../../agent/verify/challenges/proof-threads.ts';
import { createPortCheckService } from '../../../agent/verify/port-check.service.ts';
import { createSpeedTests } from '../../../agent/verify/speed-test.service.ts';
import {
  registerEgressCheckRoutes,
  registerImageCheckRoutes,
  registerPortCheckRoutes,
  registerSpeedTestRoutes,
} from '../../../agent/verify/verify.routes.ts';
import { addDeposit } from '../../../validator/central/market/collateral/collateral.service.ts';
import {
  type Conduct,
  HONEST,
  honestInventory,
  type Said,
} from '../../../validator/simulate/fleet/conduct.ts';
import { freePorts } from '../free-ports.ts';
import type { TestMarket } from '../scenes/market-fixture.ts';
import { enrolAgent } from './enrolled-agent.ts';
import { hostProgram } from './host-program.ts';

export const LISTEN = { host: '127.0.0.1', port: 0 };
const log = createLog({ name: 'test', level: 'silent' });

export type ConductedAgent = { id: string; server: HttpServer };

/** Adds a market node and its agent at the node's address. Close the server afterwards. */
export async function addConductedAgent(
  market: TestMarket,
  conductOf: () => Conduct,
): Promise<ConductedAgent> {
  const { clock } = market;
  const { id } = await market.addNode({ gpus: 2 });
  const server = createHttpServer({ log, clock, random: systemRandom, bodyLimitBytes: 100_000 });
  enrolAgent(server, id, market.provider);
  server.addHook('onRequest', async (request, reply) => {
    const { hides, cuts } = conductOf();
    if (hides.includes(request.url)) throw new ApiError('forbidden', 'this route is hidden');
    if (!cuts.includes(request.url)) return;
    void reply.hijack();
    request.raw.destroy();
  });
  const { first, last } = await freePorts(4);
  const stopping = new AbortController();
  const signal = stopping.signal;
  server.get('/v1/inventory', async () => {
    await clock.advance(conductOf().delayMs + conductOf().inventoryMs);
    return conductOf().inventory(honestInventory(id, { first, last }, { clock }));
  });
  server.post('/v1/verify', async () => ({
    ok: true,
    reason_code: null,
    steps: [],
    simulated: false,
  }));
  server.get('/v1/pods', async () => {
    await clock.advance(conductOf().delayMs);
    return { pods: [...market.agents.host(id).pods.values()] };
  });
  const isRented = () => false;
  const program = hostProgram();
  const challenges = createChallengeService({
    clock,
    executorId: id,
    workers: 1,
    proof: inline,
    devices: createDeviceChallenges({ executorId: id, clock, program, isRented, stopping: signal }),
    isRented,
  });
  registerChallengeRoutes(server, {
    challenges: {
      ...challenges,
      commit: async (request) => {
        const { nonce, commitment, delayMs, proofMs, cardsMs } = conductOf();
        const done = await challenges.commit(
          { ...ChallengeRequest.parse(request), nonce: nonce(request.nonce) },
          signal,
        );
        await clock.advance(delayMs + (request.gpu === null ? proofMs : cardsMs));
        return commitment(done);
      },
      open: async (challengeId, request) => {
        await clock.advance(conductOf().readMs);
        return challenges.open(challengeId, request, signal);
      },
    },
    stopping: signal,
  });
  const portChecks = createPortCheckService({
    clock,
    executorId: id,
    range: { first, last },
    isLeased: () => false,
    isRented: () => false,
  });
  registerPortCheckRoutes(server, {
    portChecks: {
      async open(request) {
        if (conductOf().refuses) throw new ApiError('conflict', 'busy');
        if (conductOf().opensNone) return { opened: [] };
        return conductOf().answer === HONEST.answer
          ? portChecks.open(request, signal)
          : openOtherwise(PortCheckRequest.parse(request), conductOf());
      },
    },
    stopping: signal,
  });
  registerEgressCheckRoutes(server, {
    egressChecks: { check: async () => ({ registry: conductOf().egress, problem: '' }) },
  });
  registerImageCheckRoutes(server, {
    imageChecks: {
      async check({ images }) {
        const { images: state } = conductOf();
        return { images: images.map((image) => ({ image, state, problem: '' })) };
      },
    },
  });
  registerSpeedTestRoutes(server, {
    speedTests: speedTestsOf(clock, id, conductOf),
    stopping: signal,
  });
  server.addHook('onClose', async () => stopping.abort());
  const port = Number(new URL(await server.listen(LISTEN)).port);
  const { db } = market.ports;
  await db.updateTable('executors').set({ port }).where('id', '=', id).execute();
  await addDeposit({ db, clock: market.clock }, { subject: id, note: 'test' });
  return { id, server };
}

type Advancing = Pick<TestMarket['clock'], 'advance'>;

/** Speed tests of an agent whose data is scripted. */
function speedTestsOf(clock: Clock & Advancing, executorId: string, conductOf: () => Conduct) {
  const isRented = () => conductOf().refuses;
  const tests = createSpeedTests({ clock, executorId, isRented });
  return {
    reserve: tests.reserve,
    serve(socket: WebSocket, stopping: AbortSignal) {
      const send = socket.send.bind(socket);
      const sendLater = (data: Said, options: { binary: boolean }, done: () => void) => {
        const { said, lineMs } = conductOf();
        clock.advance(lineMs).then(() => send(said(data), options, done));
      };
      Object.assign(socket, { send: sendLater });
      return tests.serve(socket, stopping);
    },
  };
}

/** Reports all ports as open and answers on them with the scripted response; null: sends no response. */
async function openOtherwise(request: PortCheckRequest, { answer }: Conduct) {
  for (const port of request.ports) {
    const said = answer(port, portAnswer(request, port));
    if (said === null) continue;
    const server = createServer((socket) => {
      socket.end(said);
      server.close();
    });
    await new Promise<void>((resolve) => server.listen(port, resolve));
  }
  return { opened: request.ports };
}

/** Runs proofs of work on the calling thread, because their sizes are small. */
const inline: RunProof = {
  leaves: async (task) => {
    const done = work(task);
    return 'leaves' in done ? done.leaves : [];
  },
  rows: async (task) => {
    const done = work(task);
    return 'rows' in done ? done.rows : [];
  },
};
