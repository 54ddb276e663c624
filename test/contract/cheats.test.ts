/** Dishonest agents, each caught by the check that is meant for it; and honest ones that have a hard time. */

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import {
  type CARD_FAULTS,
  ChallengeRequest,
  type Commitment,
} from '#shared/agent-api/challenges.ts';
import type { EgressCheckResult } from '#shared/agent-api/egress-checks.ts';
import type { Inventory } from '#shared/agent-api/inventory.ts';
import { PortCheckRequest, portAnswer } from '#shared/agent-api/port-checks.ts';
import { ApiError } from '#shared/errors.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { createLog } from '#shared/log.ts';
import { systemRandom } from '#shared/random.ts';
import { createCardChallenges } from '../../agent/challenges/card-challenges.ts';
import { registerChallengeRoutes } from '../../agent/challenges/challenge.routes.ts';
import { createChallengeService } from '../../agent/challenges/challenge.service.ts';
import { work } from '../../agent/challenges/proof.tasks.ts';
import type { RunProof } from '../../agent/challenges/proof-threads.ts';
import { registerEgressCheckRoutes } from '../../agent/egress-check/egress-check.routes.ts';
import { registerPortCheckRoutes } from '../../agent/ports/port-check.routes.ts';
import { createPortCheckService } from '../../agent/ports/port-check.service.ts';
import { registerSpeedTestRoutes } from '../../agent/speed-test/speed-test.routes.ts';
import { createSpeedTests } from '../../agent/speed-test/speed-test.service.ts';
import { createValidator, type Validator } from '../../validator/app.ts';
import { type CheckPolicy, readCheckPolicy } from '../../validator/checks/check-policy.ts';
import { CHECKS } from '../../validator/checks/check-table.ts';
import { EvidenceDocument } from '../../validator/evidence/evidence.document.ts';
import { exportEvidence } from '../../validator/evidence/evidence-export.ts';
import type { Ledger } from '../../validator/ledger/ledger.tables.ts';
import { openLedger } from '../../validator/ledger/ledger.ts';
import type { LineSize } from '../../validator/lines/measure-line.ts';
import { SMALL_PROOF } from '../../validator/pow/proof-facts.ts';
import { releaseOf } from '../../validator/updates/release.state.ts';
import { addRelease } from '../../validator/updates/release.store.ts';
import { cycleEntryOf } from '../../validator/weights/cycle-entry.ts';
import { enrolAgent } from '../fakes/enrolled-agent.ts';
import { freePorts } from '../fakes/free-ports.ts';
import { hostCards } from '../fakes/host-cards.ts';
import { createTestMarket, type TestMarket, testSigner } from '../fakes/market-fixture.ts';
import { goldenPolicy } from '../fixtures/cycle-set.ts';
import { testInventory } from '../fixtures/host-inventory.ts';
import { updateStatus } from '../fixtures/update-status.ts';

const CYCLE_MS = 60_000;
/** What a proof takes such a processor, as others of it have shown. */
const USUAL_MS = 1_000;
/** One message each way. */
const LINE_BYTES = 64 * 1024;
const LINE: LineSize = {
  ...{ firstBytes: LINE_BYTES, mostBytes: LINE_BYTES, enoughMs: 1_000, mostMs: 5_000 },
};
const FAST = { last_down_kbit: 1_000_000, last_up_kbit: 1_000_000 };
const DIGEST = 'a'.repeat(64);
const AGENT_DIGEST = `sha256:${DIGEST}`;
const LISTEN = { host: '127.0.0.1', port: 0 };
const log = createLog({ name: 'test', level: 'silent' });

/** Of another executor with the same hardware. */
const PACES = [
  { device: 'cpu' as const, model: 'Test CPU x32' },
  { device: 'gpu' as const, model: 'NVIDIA H100 80GB HBM3:2' },
].map((pace) => ({ ...pace, executor_id: 'other', mean_ms: USUAL_MS, samples: 10 }));

/** Everything counts. */
const POLICY: CheckPolicy = {
  ...readCheckPolicy(),
  modes: Object.fromEntries(CHECKS.map(({ id }) => [id, { mode: 'enforce', from: null }])),
  driver_libraries: { '570.86.15': [DIGEST] },
};

/** The agent's work without threads: it is small here. */
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

/** What an agent does otherwise than an honest one. */
type Conduct = {
  inventory(inventory: Inventory): Inventory;
  /** Milliseconds that pass before it answers: of everything, of proofs alone, of those of cards. */
  delayMs: number;
  proofMs: number;
  cardsMs: number;
  commitment(commitment: Commitment): Commitment;
  /** Which agent does the work for a challenge. */
  nonce(nonce: string): string;
  answer(port: number, honest: string): string | null;
  /** Whether it opens no ports, and takes part in no test of its line. */
  refuses: boolean;
  /** What it sends in a test of its line, after so many milliseconds. */
  said(data: Said): Said;
  lineMs: number;
  egress: EgressCheckResult['registry'];
};

type Said = string | Uint8Array;

const HONEST: Conduct = {
  inventory: (inventory) => inventory,
  delayMs: 0,
  proofMs: USUAL_MS,
  cardsMs: USUAL_MS,
  commitment: (commitment) => commitment,
  nonce: (nonce) => nonce,
  answer: (_, honest) => honest,
  refuses: false,
  said: (data) => data,
  lineMs: 0,
  egress: 'answers',
};

let market: TestMarket;
let folder: string;
const nodes: { id: string; server: HttpServer }[] = [];
let conduct: Conduct;
let second: Conduct;
let ledger: Ledger;
let validator: Validator;
let centralUrl: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-cheats-'));
  market = await createTestMarket();
  centralUrl = `${await market.server.listen(LISTEN)}/api`;
  for (const conductOf of [() => conduct, () => second]) nodes.push(await addAgent(conductOf));
});
afterAll(async () => {
  await Promise.all(nodes.map(({ server }) => server.close()));
  await market.close();
  rmSync(folder, { recursive: true });
});

beforeEach(async () => {
  // One clock serves both: it moves for the first one’s proofs alone.
  [conduct, second] = [HONEST, { ...HONEST, proofMs: 0, cardsMs: 0 }];
  ledger = await openLedger(':memory:');
  const seen_ms = market.clock.now();
  const paces = PACES.map((pace) => ({ ...pace, seen_ms }));
  await ledger.insertInto('proof_paces').values(paces).execute();
  // The other one was measured: the validator's own line is known to be fast.
  await ledger
    .insertInto('lines')
    .values(fastLineOf(nodes[1]?.id ?? ''))
    .execute();
  const known = { digest: AGENT_DIGEST, platforms: {} };
  const release = { version: 'stable', permille: 1_000, nowMs: market.clock.now() };
  await addRelease(ledger, releaseOf(known, undefined, release));
  validator = createValidator({
    ...{ clock: market.clock, random: systemRandom, log, signer: market.validator, ledger },
    ...{ centralUrl, centralHotkey: testSigner(5).hotkey, proof: SMALL_PROOF },
    policy: { acceptSimulated: false, checks: POLICY },
    weighing: {
      ...{ policy: goldenPolicy(), metagraph: null, embedded: false },
      ...{ cycleMs: CYCLE_MS, epochMs: CYCLE_MS, keptDays: 14 },
    },
    ...{ checkIntervalMs: CYCLE_MS, listIntervalMs: CYCLE_MS, line: LINE },
    releaseSource: {
      ...{ image: 'registry.example/agent', tag: 'stable', keyId: market.validator.hotkey },
      ...{ firstPermille: 1_000, expiryMs: CYCLE_MS },
    },
  });
});
afterEach(async () => {
  await validator.close();
  await ledger.destroy();
});

/** A node of the market and the agent at its address. */
async function addAgent(conductOf: () => Conduct) {
  const { clock } = market;
  const { id } = await market.addNode({ gpus: 2 });
  const server = createHttpServer({ log, clock, random: systemRandom, bodyLimitBytes: 100_000 });
  enrolAgent(server, id, market.provider);
  const { first, last } = await freePorts(4);
  const stopping = new AbortController();
  const signal = stopping.signal;
  server.get('/v1/inventory', async () => {
    await clock.advance(conductOf().delayMs);
    return conductOf().inventory(honestInventory(id, { first, last }));
  });
  server.post('/v1/verify', async () => ({
    ok: true,
    reason_code: null,
    steps: [],
    simulated: false,
  }));
  server.get('/v1/pods', async () => ({ pods: [...market.agents.host(id).pods.values()] }));
  const challenges = createChallengeService({
    ...{ clock, executorId: id, workers: 1, folder: join(folder, id), proof: inline },
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
    ...{ clock, executorId: id, range: { first, last } },
    ...{ isLeased: () => false, isRented: () => false },
  });
  registerPortCheckRoutes(server, {
    portChecks: {
      async open(request) {
        if (conductOf().refuses) throw new ApiError('conflict', 'busy');
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
  registerSpeedTestRoutes(server, { speedTests: speedTestsOf(id, conductOf), stopping: signal });
  server.addHook('onClose', async () => stopping.abort());
  const port = Number(new URL(await server.listen(LISTEN)).port);
  const listed = { port, collateral_deposited: 1 } as const;
  await market.ports.db.updateTable('executors').set(listed).where('id', '=', id).execute();
  return { id, server };
}

/** An agent's, but for what it says. */
function speedTestsOf(executorId: string, conductOf: () => Conduct) {
  const { clock } = market;
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

const fastLineOf = (executorId: string) => ({
  executor_id: executorId,
  ...{ tried_ms: market.clock.now(), measured_ms: market.clock.now(), samples: 5 },
  ...{ down_kbit: 1_000_000, up_kbit: 1_000_000, ...FAST, false_stream: null, refusals: 0 },
});

/** Says that all ports are open, and answers as it likes; null: not at all. */
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

function honestInventory(id: string, range: { first: number; last: number }): Inventory {
  const inventory = testInventory(id, { collectedMs: market.clock.now() });
  const { gpu } = inventory;
  return {
    ...inventory,
    simulated: false,
    gpu: { ...gpu, driver: 'nvidia' },
    ports: { ...range, free: 4 },
    update: updateStatus(AGENT_DIGEST, market.clock.now()),
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

/** So many looks at both, one each cycle; the last document of the first, or of another. */
async function look(times: number, which = 0): Promise<EvidenceDocument> {
  for (let time = 0; time < times; time += 1) {
    await validator.runOnce();
    await market.clock.advance(CYCLE_MS + 1_000);
  }
  const rows = ledger.selectFrom('evidence').select('document').orderBy('seq', 'desc');
  const row = await rows
    .where('executor_id', '=', nodes[which]?.id ?? '')
    .executeTakeFirstOrThrow();
  return EvidenceDocument.parse(JSON.parse(row.document));
}

const reasonsOf = ({ checks }: EvidenceDocument) =>
  checks.flatMap(({ check_id, reason_code }) =>
    reason_code === null ? [] : [`${check_id} ${reason_code}`],
  );

type Gpu = Inventory['gpu'];
const withGpu = (change: (gpu: Gpu) => Partial<Gpu>): Partial<Conduct> => ({
  inventory: (inventory) => ({ ...inventory, gpu: { ...inventory.gpu, ...change(inventory.gpu) } }),
});
const everyCard = (change: Partial<Gpu['devices'][number]>) =>
  withGpu(({ devices }) => ({ devices: devices.map((device) => ({ ...device, ...change })) }));

/** One card does not do its part; null: the agent says that it has nothing to have it done with. */
const ofCards = (code: (typeof CARD_FAULTS)[number] | null): Partial<Conduct> => ({
  commitment: (commitment) => {
    if (commitment.cards === null || code === null) return { ...commitment, cards: null };
    const [first, ...others] = commitment.cards;
    if (first === undefined) throw new Error('no card');
    const fault = { code, detail: 'said by the driver' };
    return { ...commitment, cards: [{ ...first, fault, product: null, memory: null }, ...others] };
  },
});

let recorded: Commitment | null = null;
/** Of a test before. */
const OLD_STREAM = new Uint8Array(LINE_BYTES).fill(7);
const AGAIN_MS = 6 * 60_000;

describe('a cheat', () => {
  it.each<[string, string, Partial<Conduct>, number]>([
    ['of another model', 'gpu_vram GPU_VRAM_MISMATCH', everyCard({ memory_total_mib: 24_576 }), 1],
    [
      'of a missing card',
      'gpu_inventory GPU_COUNT_MISMATCH',
      {
        inventory: (inventory) => {
          const devices = inventory.gpu.devices.slice(1);
          const driver_gpus = inventory.sources?.driver_gpus?.slice(1) ?? null;
          const sources = inventory.sources && { ...inventory.sources, driver_gpus, pci_gpus: 1 };
          return { ...inventory, gpu: { ...inventory.gpu, devices }, sources };
        },
      },
      1,
    ],
    [
      'of an altered inventory',
      'cpu_truth CPU_OVERSTATED',
      { inventory: (inventory) => ({ ...inventory, cpu: { ...inventory.cpu, cores: 128 } }) },
      1,
    ],
    [
      'of cards that only nvidia-smi knows',
      'gpu_sources_agree GPU_SOURCES_DISAGREE',
      withGpu(({ devices }) => ({
        devices: devices.map((each) => ({ ...each, uuid: `${each.uuid}x` })),
      })),
      1,
    ],
    ['of a throttled card', 'power_limit GPU_POWER_CAPPED', everyCard({ power_limit_w: 300 }), 1],
    [
      'of a foreign library',
      'driver_library DRIVER_LIBRARY_MISMATCH',
      {
        inventory: ({ sources, ...inventory }) => ({
          ...inventory,
          sources: sources && { ...sources, driver_library_sha256: 'b'.repeat(64) },
        }),
      },
      1,
    ],
    [
      'of a foreign image of the agent',
      'image_digest AGENT_IMAGE_FOREIGN',
      {
        inventory: ({ update, ...inventory }) => ({
          ...inventory,
          update: update && { ...update, current_digest: `sha256:${'e'.repeat(64)}` },
        }),
      },
      1,
    ],
    [
      'of an update that never ends',
      'agent_update AGENT_UPDATE_STUCK',
      {
        inventory: ({ update, ...inventory }) => ({
          ...inventory,
          update: update && { ...update, state: 'STAGED', since_ms: 0 },
        }),
      },
      1,
    ],
    [
      'of a shifted clock',
      'clock CLOCK_SKEW',
      {
        inventory: (inventory) => ({ ...inventory, collected_ms: inventory.collected_ms + 60_000 }),
      },
      1,
    ],
    [
      'of a busy card',
      'gpu_idle_use GPU_BUSY_OUTSIDE_POD',
      everyCard({ processes: 1, utilization_percent: 99 }),
      2,
    ],
    ['of closed ports', 'ports PORTS_CLOSED', { answer: () => null }, 2],
    ['of ports that answer for others', 'ports PORTS_CLOSED', { answer: (port) => `${port}` }, 2],
    ['of ports that stay shut', 'ports PORTS_REFUSED', { refuses: true }, 3],
    ['of a host behind a wall', 'egress EGRESS_BLOCKED', { egress: 'blocked' }, 2],
    ['of a throttled line', 'bandwidth BANDWIDTH_LOW', { lineMs: 50 }, 2],
    [
      'of a precomputed proof',
      'pow_cpu POW_MISMATCH, pow_gpu POW_MISMATCH',
      { nonce: () => 'A'.repeat(22) },
      1,
    ],
    [
      'of a replayed proof',
      'pow_cpu POW_MISMATCH, pow_gpu POW_MISMATCH',
      {
        commitment: (commitment) => {
          recorded ??= commitment;
          return { ...recorded, challenge_id: commitment.challenge_id };
        },
      },
      2,
    ],
    [
      'of a skipped walk',
      'pow_mem POW_MISMATCH',
      { commitment: (each) => ({ ...each, memory: null }) },
      1,
    ],
    ['of slow answers', 'pow_cpu POW_TOO_SLOW', { proofMs: 5 * USUAL_MS }, 3],
    ['of cards that work slowly', 'pow_gpu POW_TOO_SLOW', { cardsMs: 5 * USUAL_MS }, 3],
    ['of cards elsewhere', 'pow_gpu POW_TOO_FAST', { cardsMs: 100 }, 3],
    ['of a card that is another', 'pow_gpu UUID_MISMATCH', ofCards('UUID_MISMATCH'), 1],
    ['of a card that is not there', 'pow_gpu DEVICE_ABSENT', ofCards('DEVICE_ABSENT'), 3],
    ['of memory that is in use', 'pow_gpu VRAM_UNAVAILABLE', ofCards('VRAM_UNAVAILABLE'), 3],
    ['of cards that are not asked', 'pow_gpu GPU_PROOF_MISSING', ofCards(null), 3],
    ['of answers from elsewhere', 'pow_cpu POW_TOO_FAST', { proofMs: 100 }, 3],
  ])('%s is caught: %s', async (_, reason, change, looks) => {
    conduct = { ...HONEST, ...change };
    const document = await look(looks);
    expect([reasonsOf(document).join(', '), document.verdict]).toEqual([reason, 'failed']);
  });

  it.each<[string, Conduct['said']]>([
    [
      'of a hash of what it never got',
      (data) => (typeof data === 'string' ? data.replace(/\w{64}/, DIGEST) : data),
    ],
    ['of an old stream', (data) => (typeof data === 'string' ? data : OLD_STREAM)],
    ['of a stream that ends early', (data) => (typeof data === 'string' ? data : 'done')],
  ])('%s is caught when it is seen twice: bandwidth BANDWIDTH_FALSE', async (_, said) => {
    conduct = { ...HONEST, said };
    await look(1);
    await market.clock.advance(AGAIN_MS);
    const once = await look(1);
    const twice = await look(1);
    expect([reasonsOf(once), reasonsOf(twice)]).toEqual([[], ['bandwidth BANDWIDTH_FALSE']]);
    expect([once.verdict, twice.verdict]).toEqual(['ok', 'failed']);
  });

  it('of one card that answers for two is caught, and whoever had it first keeps it', async () => {
    expect((await look(1)).verdict).toBe('ok');
    second = {
      ...second,
      inventory: (inventory) => {
        const { devices } = testInventory(nodes[0]?.id ?? '').gpu;
        const driver_gpus = devices.map(({ uuid, name }) => ({ uuid, model: name }));
        const sources = inventory.sources && { ...inventory.sources, driver_gpus };
        return { ...inventory, gpu: { ...inventory.gpu, devices }, sources };
      },
    };
    const document = await look(1, 1);
    expect(reasonsOf(document)).toContain('gpu_uuid_unique GPU_DUPLICATE');
    expect((await look(1)).verdict).toBe('ok');
  });
});

describe('an honest executor', () => {
  it('passes everything, with its proof in the evidence, which gives the same when judged again', async () => {
    const document = await look(2);
    expect([reasonsOf(document), document.verdict]).toEqual([[], 'ok']);
    expect(
      document.checks
        .filter(({ message }) => message === 'unknown')
        .map(({ check_id }) => check_id),
    ).toEqual(['ssh_reach', 'rental_probe', 'gpu_drop', 'gpu_side_use', 'pod_alive']);
    expect(document.pow).toMatchObject({
      roots: [expect.stringMatching(/^[0-9a-f]{64}$/)],
      ms: USUAL_MS,
      device: 'cpu',
    });
    expect(document.pow_gpu).toMatchObject({ device: 'gpu', ms: USUAL_MS });
    expect(document.pow_gpu?.cards.map(({ roots }) => roots.length)).toEqual([2, 2]);
    expect(await exportEvidence(ledger, null, () => undefined)).toEqual([]);
  });

  it('under load is late now and then, and is not punished', async () => {
    for (const proofMs of [USUAL_MS, 5 * USUAL_MS, 5 * USUAL_MS, USUAL_MS, 5 * USUAL_MS]) {
      conduct = { ...HONEST, proofMs, cardsMs: proofMs };
      expect((await look(1)).verdict).toBe('ok');
    }
  });

  it('with a slow link is not punished', async () => {
    conduct = { ...HONEST, delayMs: 1_500 };
    expect([reasonsOf(await look(3)), (await look(1)).verdict]).toEqual([[], 'ok']);
  });

  it('is not judged by a line that may be the validator’s own', async () => {
    await ledger.updateTable('lines').set({ last_down_kbit: 5_000, last_up_kbit: 5_000 }).execute();
    conduct = { ...HONEST, lineMs: 50 };
    const document = await look(2);
    expect([reasonsOf(document), document.verdict]).toEqual([[], 'ok']);
    expect(
      cycleEntryOf(document, DIGEST, { failurePpm: 0, uptimeMinutes: 0, runtimeProven: false }),
    ).toMatchObject({
      bandwidth_mbit: null,
    });
  });

  it('has the mean of its line in what its weight is made of', async () => {
    conduct = { ...HONEST, lineMs: 2 };
    const past = { failurePpm: 0, uptimeMinutes: 0, runtimeProven: false };
    expect(cycleEntryOf(await look(2), DIGEST, past)).toMatchObject({ bandwidth_mbit: 131 });
  });
});

describe('on a rented host', () => {
  beforeAll(async () => {
    await market.report({ id: nodes[0]?.id ?? '', port: 1 });
    const { status, body } = await market.rent(await market.renter(), nodes[0]?.id ?? '');
    expect([status, body]).toEqual([200, expect.anything()]);
    await market.sync();
  });

  it('an honest executor passes, and is not disturbed', async () => {
    const document = await look(2);
    expect([reasonsOf(document), document.verdict]).toEqual([[], 'ok']);
    const asked = document.checks.filter(({ message }) => message !== 'unknown');
    expect(asked.map(({ check_id }) => check_id)).toEqual(
      expect.arrayContaining(['gpu_drop', 'pod_alive']),
    );
    const lines = ledger.selectFrom('lines').where('executor_id', '=', nodes[0]?.id ?? '');
    expect(await lines.selectAll().execute()).toEqual([]);
  });

  it('a card that is gone is missed', async () => {
    conduct = { ...HONEST, ...withGpu(({ devices }) => ({ devices: devices.slice(1) })) };
    const document = await look(2);
    expect(reasonsOf(document)).toContain('gpu_drop RENTED_GPU_LOST');
    expect(document.verdict).toBe('failed');
  });

  it('a hidden process on a leased card is seen', async () => {
    conduct = { ...HONEST, ...everyCard({ processes: 2, outside_processes: 1 }) };
    const [once, twice] = [await look(1), await look(1)];
    expect([reasonsOf(once), once.verdict]).toEqual([[], 'ok']);
    expect(reasonsOf(twice)).toEqual(['gpu_side_use GPU_PROCESS_OUTSIDE_POD']);
  });
});
