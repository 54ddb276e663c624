/** An agent that answers checks honestly, except where a test scripts its behaviour. */
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { WebSocket } from 'ws';
import { ChallengeRequest, type Commitment } from '#shared/api/agent/challenges.ts';
import {
  type EgressCheckResult,
  type ImageAvailability,
  PortCheckRequest,
  portAnswer,
} from '#shared/api/agent/host-checks.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createCardChallenges } from '../../../agent/verify/challenges/card-challenges.ts';
import { registerChallengeRoutes } from '../../../agent/verify/challenges/challenge.routes.ts';
import { createChallengeService } from '../../../agent/verify/challenges/challenge.service.ts';
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
import { testInventory } from '../../fixtures/host-inventory.ts';
import { updateStatus } from '../../fixtures/update-status.ts';
import { freePorts } from '../free-ports.ts';
import type { TestMarket } from '../scenes/market-fixture.ts';
import { enrolAgent } from './enrolled-agent.ts';
import { hostCards } from './host-cards.ts';

/** Duration of a proof of work on this processor, as measured on other hosts. */
export const USUAL_MS = 1_000;
/** Digest of the driver library, on the host and in the image. */
export const DIGEST = 'a'.repeat(64);
export const AGENT_DIGEST = `sha256:${DIGEST}`;
export const LISTEN = { host: '127.0.0.1', port: 0 };
const log = createLog({ name: 'test', level: 'silent' });

/** Ways in which a scripted agent differs from an honest one. */
export type Conduct = {
  inventory(inventory: Inventory): Inventory;
  /** Delays in milliseconds before: every answer, the inventory, a proof of work, a proof of work on a card. */
  delayMs: number;
  inventoryMs: number;
  proofMs: number;
  cardsMs: number;
  commitment(commitment: Commitment): Commitment;
  /** Returns the nonce for which the agent answers a challenge. */
  nonce(nonce: string): string;
  answer(port: number, honest: string): string | null;
  /** True: opens no ports and rejects line tests. */
  refuses: boolean;
  /** True: reports that it could open no port. */
  opensNone: boolean;
  /** `hides`: routes that it rejects. `cuts`: routes during which it closes the connection. */
  hides: readonly string[];
  cuts: readonly string[];
  /** Replaces the data that the agent sends in a line test. `lineMs`: delay before it is sent. */
  said(data: Said): Said;
  lineMs: number;
  egress: EgressCheckResult['registry'];
  images: ImageAvailability['state'];
};

type Said = string | Uint8Array;

export const HONEST: Conduct = {
  inventory: (inventory) => inventory,
  delayMs: 0,
  inventoryMs: 0,
  proofMs: USUAL_MS,
  cardsMs: USUAL_MS,
  commitment: (commitment) => commitment,
  nonce: (nonce) => nonce,
  answer: (_, honest) => honest,
  refuses: false,
  opensNone: false,
  hides: [],
  cuts: [],
  said: (data) => data,
  lineMs: 0,
  egress: 'answers',
  images: 'pullable',
};

export type ConductedAgent = { id: string; server: HttpServer };

/**
 * Adds a market node and its agent at the node's address. `folder` holds its scratch files. Close the server
 * afterwards.
 */
export async function addConductedAgent(
  market: TestMarket,
  folder: string,
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
    return conductOf().inventory(honestInventory(id, { first, last }, clock));
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
  const challenges = createChallengeService({
    clock,
    executorId: id,
    workers: 1,
    folder: join(folder, id),
    proof: inline,
    cards: createCardChallenges({ executorId: id, gpuProof: hostCards() }),
    isRented: () => false,
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

function honestInventory(
  id: string,
  range: { first: number; last: number },
  clock: Clock,
): Inventory {
  const inventory = testInventory(id, { collectedMs: clock.now() });
  const { gpu } = inventory;
  return {
    ...inventory,
    simulated: false,
    gpu: { ...gpu, driver: 'nvidia' },
    ports: { ...range, free: 4 },
    update: updateStatus(AGENT_DIGEST, clock.now()),
    sources: {
      pci_gpus: gpu.devices.length,
      driver_gpus: gpu.devices.map(({ uuid, name }) => ({ uuid, model: name })),
      driver_library_sha256: DIGEST,
      cpus_present: inventory.cpu.cores,
      memory_kib: inventory.memory.total_kib,
      disk_kib: inventory.disk.total_kib,
      disk_writable: true,
      restic: '0.14.0',
    },
  };
}

/** Runs proofs of work on the calling thread, because their sizes are small. */
const inline: RunProof = {
  leaves: async (task) => {
    const done = await work(task);
    return 'leaves' in done ? done.leaves : [];
  },
  rows: async (task) => {
    const done = await work(task);
    return 'rows' in done ? done.rows : [];
  },
  walk: async (task) => {
    const done = await work(task);
    if (!('digest' in done)) throw new Error('no walk');
    return done;
  },
};
