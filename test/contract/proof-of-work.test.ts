/**
 * The agent's proof of work, verified by the validator: real threads, small sizes. A test program takes the place of the
 * proof program, which gpu-proof.real.test.ts runs.
 */
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { agentError } from '#shared/api/agent/agent-client.ts';
import {
  type ChallengeRequest,
  Commitment,
  Opening,
  type OpenRequest,
  type ReadFill,
} from '#shared/api/agent/challenges.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { registerChallengeRoutes } from '../../agent/verify/challenges/challenge.routes.ts';
import { createChallengeService } from '../../agent/verify/challenges/challenge.service.ts';
import { createDeviceChallenges } from '../../agent/verify/challenges/device-challenges.ts';
import { proofThreads } from '../../agent/verify/challenges/proof-threads.ts';
import { CardProof } from '../../validator/checks/measured.ts';
import { proveCards } from '../../validator/inspection/proof/gpu-proof.ts';
import { type ProofPlan, prove } from '../../validator/inspection/proof/host-proof.ts';
import { createVerifier } from '../../validator/inspection/proof/verifier.ts';
import { hostProgram, NO_PROGRAM } from '../fakes/agents/host-program.ts';

const EXECUTOR = '3f9f41a6-0001-4000-8000-000000000001';
const FILL = { kind: 'fill', lanes: 1, lane_blocks: 64, steps: 40, readMs: 60_000 } as const;
const PLAN: ProofPlan = {
  deadlineMs: 60_000,
  roundTripMs: 0,
  product: { n: 112, rounds: 3 },
  memory: { ...FILL, lanes: 2 },
  disk: FILL,
};

const verifier = createVerifier();
afterAll(() => verifier.close());

let isRented: boolean;
let server: HttpServer;
let stopping: AbortController;
/** Number of programs that are running. */
let sessions: number;
/** Alter the agent's answers before the validator receives them. */
let tamper: (commitment: Commitment) => void;
let tamperRead: (opening: Opening) => void;

beforeEach(() => {
  [isRented, tamper, tamperRead, sessions] = [false, () => {}, () => {}, 0];
  serve();
});
afterEach(async () => {
  stopping.abort();
  await server.close();
});

function countedProgram() {
  const program = hostProgram(() => {
    sessions -= 1;
  });
  const start: typeof program.start = (...request) => {
    sessions += 1;
    return program.start(...request);
  };
  return { ...program, start };
}

function serve(program = countedProgram()): void {
  stopping = new AbortController();
  const isRentedNow = () => isRented;
  const challenges = createChallengeService({
    clock: systemClock,
    executorId: EXECUTOR,
    workers: 3,
    proof: proofThreads,
    devices: createDeviceChallenges({
      executorId: EXECUTOR,
      clock: systemClock,
      program,
      isRented: isRentedNow,
      stopping: stopping.signal,
    }),
    isRented: isRentedNow,
  });
  server = createHttpServer({
    clock: systemClock,
    random: systemRandom,
    bodyLimitBytes: 10_000,
    log: createLog({ name: 'test', level: 'silent' }),
  });
  registerChallengeRoutes(server, { challenges, stopping: stopping.signal });
}

const REQUEST: ChallengeRequest = {
  challenge_id: systemRandom.uuid(),
  nonce: 'A'.repeat(22),
  executor_id: EXECUTOR,
  deadline_ms: 60_000,
  product: null,
  memory: { kind: 'fill', lanes: 1, lane_blocks: 64 },
  disk: null,
  gpu: null,
};
const EMPTY_LEAF = Buffer.alloc(4_096).toString('base64');

async function post<T>(schema: z.ZodType<T>, url: string, payload: object): Promise<T> {
  const { statusCode, body } = await server.inject({ method: 'POST', url, payload });
  if (statusCode !== 200)
    throw agentError(statusCode, JSON.parse(body), { signsFor: 'node', nowMs: 0 });
  return schema.parse(JSON.parse(body));
}

const client = {
  async challenge(request: ChallengeRequest) {
    const commitment = await post(Commitment, '/v1/challenges', request);
    tamper(commitment);
    return commitment;
  },
  async openChallenge(id: string, request: OpenRequest) {
    const opening = await post(Opening, `/v1/challenges/${id}/open`, request);
    tamperRead(opening);
    return opening;
  },
};

const attempt = (plan: Partial<ProofPlan> = {}, executor = EXECUTOR) =>
  prove({ client, clock: systemClock, random: systemRandom, verifier }, executor, {
    ...PLAN,
    ...plan,
  });

it('the agent proves product, memory and disk, and ends the programs that it started', async () => {
  expect(await attempt()).toMatchObject({
    status: 'proven',
    commitment: { device: 'cpu', workers: 3, memory: { fill_ms: expect.any(Number) } },
  });
  expect(sessions).toBe(0);
});

it('a host without the program proves its product, and no memory', async () => {
  await server.close();
  serve({ ...countedProgram(), ...NO_PROGRAM });
  expect(await attempt(PRODUCT)).toMatchObject({ status: 'proven' });
  expect(await attempt()).toMatchObject({ fault: 'GPU_PROOF_MISSING', part: 'memory' });
});

const PRODUCT = { memory: null, disk: null };
const MEMORY = { product: null, disk: null };
const ZEROS = '0'.repeat(64);
it.each<[string, Partial<ProofPlan>, (commitment: Commitment) => void, string]>([
  // The seeds of later rounds depend on the first root.
  ['a root', PRODUCT, ({ product }) => product?.roots.splice(0, 1, '0'.repeat(64)), 'Round '],
  ['a missing round', PRODUCT, ({ product }) => product?.roots.pop(), 'requested rounds'],
  ['a product', PRODUCT, (whole) => Object.assign(whole, { product: null }), 'requested rounds'],
  ['memory', MEMORY, ({ memory }) => Object.assign(memory ?? {}, { root: ZEROS }), 'commitment'],
])('the validator rejects a wrong result of %s', async (_, plan, change, words) => {
  tamper = change;
  const proof = await attempt(plan);
  expect(proof).toMatchObject({ status: 'failed', fault: 'POW_MISMATCH' });
  expect('detail' in proof && proof.detail).toContain(words);
});

it.each<[string, (fill: ReadFill) => void, string]>([
  ['a block', ({ leaves }) => Object.assign(leaves[0] ?? {}, { bytes: EMPTY_LEAF }), 'commitment'],
  ['a path', ({ leaves }) => leaves[0]?.path.reverse(), 'commitment'],
  ['another leaf', ({ leaves }) => Object.assign(leaves[0] ?? {}, { index: 15 }), 'requested'],
  ['a missing leaf', ({ leaves }) => leaves.pop(), 'requested'],
  ['the steps of a walk', ({ states }) => states.fill(ZEROS), 'read'],
  ['a shorter walk', ({ states }) => states.pop(), 'length'],
])('the validator rejects %s of a fill that differs', async (_, change, words) => {
  tamperRead = ({ fill }) => fill && change(fill);
  const proof = await attempt(MEMORY);
  expect(proof).toMatchObject({ status: 'failed', fault: 'POW_MISMATCH', part: 'memory' });
  expect('detail' in proof && proof.detail).toContain(words);
});

it('each card proves its product and its fill; a card that invents its fill does not', async () => {
  const uuids = ['GPU-1', 'GPU-2'];
  const plan = {
    product: { n: 64, rounds: 2 },
    cards: uuids.map((uuid) => ({ uuid, memory: FILL })),
    deadlineMs: 60_000,
    roundTripMs: 0,
  };
  const deps = { client, clock: systemClock, random: systemRandom, verifier };
  expect(await proveCards(deps, EXECUTOR, plan)).toMatchObject({
    status: 'answered',
    cards: uuids.map((uuid) => ({ uuid, reason: null })),
  });
  expect(sessions).toBe(0);
  tamper = ({ cards }) => Object.assign(cards?.[0]?.memory ?? {}, { root: ZEROS });
  const { cards } = z
    .object({ cards: z.array(CardProof) })
    .parse(await proveCards(deps, EXECUTOR, plan));
  expect(cards.map(({ reason }) => reason)).toEqual(['POW_MISMATCH', null]);
});

it('the validator rejects a walk that was answered late', async () => {
  const memory = { ...FILL, readMs: 0 };
  expect(await attempt({ ...MEMORY, memory })).toMatchObject({
    fault: 'POW_TIMEOUT',
    part: 'memory',
    detail: expect.stringContaining('at most 0 ms'),
  });
});

it('a rental or the next challenge ends the programs of a challenge that is not read', async () => {
  const unread = () => client.challenge({ ...REQUEST, challenge_id: systemRandom.uuid() });
  await unread();
  await unread();
  expect(sessions).toBe(1);
  isRented = true;
  await expect.poll(() => sessions, { timeout: 5_000 }).toBe(0);
});

it('an agent of an older version has no program for this challenge', async () => {
  const older = {
    ...client,
    challenge: () => Promise.reject(new ApiError('validation_error', 'memory.block_bytes')),
  };
  const deps = { client: older, clock: systemClock, random: systemRandom, verifier };
  expect(await prove(deps, EXECUTOR, PLAN)).toMatchObject({ status: 'unsupported' });
});

it('the agent aborts a proof at the deadline, and computes the next challenge', async () => {
  const began = systemClock.monotonicMs();
  const late = await attempt({ deadlineMs: 1_000, product: { n: 4_096, rounds: 16 } });
  expect(late).toMatchObject({ status: 'failed', fault: 'POW_TIMEOUT' });
  expect(systemClock.monotonicMs() - began).toBeLessThan(20_000);
  expect(await attempt(PRODUCT)).toMatchObject({ status: 'proven' });
});

it('a proof ends when the agent stops', async () => {
  const under = attempt({ product: { n: 4_096, rounds: 16 } });
  await systemClock.sleep(50);
  stopping.abort(new ApiError('upstream_unavailable', 'The agent stops'));
  expect(await under).toMatchObject({ status: 'not_measured' });
});

it('the agent rejects a challenge while a pod or another challenge runs, or for another host', async () => {
  isRented = true;
  expect(await attempt()).toMatchObject({ status: 'failed', fault: 'POW_REFUSED' });
  isRented = false;
  const proofs = await Promise.all([attempt(), attempt()]);
  expect(proofs.map(({ status }) => status).sort()).toEqual(['failed', 'proven']);
  const other = await attempt({}, '3f9f41a6-0001-4000-8000-000000000002');
  expect(other).toMatchObject({ fault: 'POW_REFUSED', detail: expect.stringContaining('another') });
});

it.each([
  ['a row beyond the last', { round: 0, index: 112 }, 422],
  ['a round beyond the last', { round: 3, index: 0 }, 422],
])('the agent does not return %s', async (_, row, status) => {
  let id = '';
  tamper = (commitment) => {
    id = commitment.challenge_id;
  };
  await attempt(PRODUCT);
  const url = `/v1/challenges/${id}/open`;
  const answer = await server.inject({ method: 'POST', url, payload: { rows: [row] } });
  expect(answer.statusCode).toBe(status);
  const unknown = `/v1/challenges/${systemRandom.uuid()}/open`;
  const none = await server.inject({ method: 'POST', url: unknown, payload: { rows: [row] } });
  expect(none.statusCode).toBe(404);
});

it('the agent does not open a leaf beyond the last, or rows and a fill at once', async () => {
  const { challenge_id: id } = await client.challenge(REQUEST);
  const url = `/v1/challenges/${id}/open`;
  const fill = { device: 'memory', walk: null, leaves: [16] };
  const rows = [{ round: 0, index: 0 }];
  for (const payload of [{ fill }, { fill: { ...fill, leaves: [0] }, rows }, {}]) {
    expect((await server.inject({ method: 'POST', url, payload })).statusCode).toBe(422);
  }
});

const { readMs: _, steps: __, ...SMALLEST } = FILL;
it.each([
  { product: { n: 100, rounds: 1 } },
  { product: { n: 8_192, rounds: 1 } },
  { memory: { ...SMALLEST, lane_blocks: 100 } },
  { memory: { ...SMALLEST, lanes: 0 } },
  { memory: { ...SMALLEST, lanes: 65_536 } },
  { disk: { block_bytes: 4_096, blocks: 200, steps: 500 } },
])('the agent rejects challenges beyond its limits: %j', async (change) => {
  const payload = { ...REQUEST, ...change };
  const { statusCode } = await server.inject({ method: 'POST', url: '/v1/challenges', payload });
  expect(statusCode).toBe(422);
});
