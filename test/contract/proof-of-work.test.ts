/** The agent's proof of work, verified by the validator: real threads, memory and files, small sizes. */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import type { z } from 'zod';
import { agentError } from '#shared/api/agent/agent-client.ts';
import {
  type ChallengeRequest,
  Commitment,
  Opening,
  type OpenRequest,
} from '#shared/api/agent/challenges.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createCardChallenges } from '../../agent/verify/challenges/card-challenges.ts';
import { registerChallengeRoutes } from '../../agent/verify/challenges/challenge.routes.ts';
import { createChallengeService } from '../../agent/verify/challenges/challenge.service.ts';
import { proofThreads } from '../../agent/verify/challenges/proof-threads.ts';
import { type ProofPlan, prove } from '../../validator/inspection/proof/host-proof.ts';
import { createVerifier } from '../../validator/inspection/proof/verifier.ts';
import { NO_CARDS } from '../fakes/agents/host-cards.ts';
import { command } from '../fakes/agents/real-host.ts';

const EXECUTOR = '3f9f41a6-0001-4000-8000-000000000001';
const WALK = { block_bytes: 4_096, blocks: 200, steps: 500 };
const PLAN: ProofPlan = {
  deadline_ms: 60_000,
  product: { n: 112, rounds: 3 },
  memory: { block_bytes: 64, blocks: 10_000, steps: 2_000 },
  disk: WALK,
};

const verifier = createVerifier();
afterAll(() => verifier.close());

let folder: string;
let isRented: boolean;
let server: HttpServer;
let stopping: AbortController;
/** Alters the agent's commitment before the validator receives it. */
let tamper: (commitment: Commitment) => void;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-proof-'));
  [isRented, tamper] = [false, () => {}];
  serve();
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

function serve(): void {
  stopping = new AbortController();
  const challenges = createChallengeService({
    clock: systemClock,
    executorId: EXECUTOR,
    workers: 3,
    folder,
    proof: proofThreads,
    cards: createCardChallenges({ executorId: EXECUTOR, gpuProof: NO_CARDS }),
    isRented: () => isRented,
  });
  server = createHttpServer({
    clock: systemClock,
    random: systemRandom,
    bodyLimitBytes: 10_000,
    log: createLog({ name: 'test', level: 'silent' }),
  });
  registerChallengeRoutes(server, { challenges, stopping: stopping.signal });
}

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
  openChallenge: (id: string, request: OpenRequest) =>
    post(Opening, `/v1/challenges/${id}/open`, request),
};

const attempt = (plan: Partial<ProofPlan> = {}, executor = EXECUTOR) =>
  prove({ client, clock: systemClock, random: systemRandom, verifier }, executor, {
    ...PLAN,
    ...plan,
  });

async function isDirectPossible(): Promise<boolean> {
  const probe = join(folder, 'probe');
  writeFileSync(probe, Buffer.alloc(4_096));
  const { exitCode } = await command(
    'dd',
    `if=${probe}`,
    'of=/dev/null',
    'iflag=direct',
    'bs=4096',
  );
  rmSync(probe);
  return exitCode === 0;
}

it('the agent proves product, memory and disk, and leaves no file behind', async () => {
  const proof = await attempt();
  expect(proof).toMatchObject({
    status: 'proven',
    commitment: {
      device: 'cpu',
      workers: 3,
      memory: { fill_ms: expect.any(Number) },
      // Only opening a file shows if the test's file system supports direct I/O.
      disk: { direct: await isDirectPossible() },
    },
  });
  expect(readdirSync(folder)).toEqual([]);
});

const PRODUCT = { memory: null, disk: null };
const MEMORY = { product: null, disk: null };
const DISK = { product: null, memory: null };
it.each<[string, Partial<ProofPlan>, (commitment: Commitment) => void, string]>([
  ['a root', PRODUCT, ({ product }) => product?.roots.splice(1, 1, '0'.repeat(64)), 'Round '],
  ['a missing round', PRODUCT, ({ product }) => product?.roots.pop(), 'requested rounds'],
  ['a product', PRODUCT, (whole) => Object.assign(whole, { product: null }), 'requested rounds'],
  [
    'the random reads from memory',
    MEMORY,
    ({ memory }) => Object.assign(memory ?? {}, { digest: '0' }),
    'memory',
  ],
  ['the random reads from the disk', DISK, (whole) => Object.assign(whole, { disk: null }), 'disk'],
])('the validator rejects a wrong result of %s', async (_, plan, change, words) => {
  tamper = change;
  const proof = await attempt(plan);
  expect(proof).toMatchObject({ status: 'failed', fault: 'POW_MISMATCH' });
  expect('detail' in proof && proof.detail).toContain(words);
});

it('the agent aborts a proof at the deadline, and computes the next challenge', async () => {
  const began = systemClock.monotonicMs();
  const late = await attempt({ deadline_ms: 1_000, product: { n: 4_096, rounds: 16 } });
  expect(late).toMatchObject({ status: 'failed', fault: 'POW_TIMEOUT' });
  expect(systemClock.monotonicMs() - began).toBeLessThan(20_000);
  expect(await attempt(PRODUCT)).toMatchObject({ status: 'proven' });
});

it('a proof ends when the agent stops; the next agent removes the file that a killed agent left', async () => {
  const under = attempt({ product: { n: 4_096, rounds: 16 } });
  await systemClock.sleep(50);
  stopping.abort(new ApiError('upstream_unavailable', 'The agent stops'));
  expect(await under).toMatchObject({ status: 'not_measured' });
  await server.close();
  serve();
  const left = join(folder, 'challenge.data');
  writeFileSync(left, 'half');
  expect((await attempt({ product: null })).status).toBe('proven');
  expect(existsSync(left)).toBe(false);
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

it.each([
  { product: { n: 100, rounds: 1 } },
  { product: { n: 8_192, rounds: 1 } },
  { memory: { block_bytes: 64, blocks: 2 ** 25, steps: 1 } },
  { disk: { ...WALK, steps: 200_000 } },
])('the agent rejects challenges beyond its limits: %j', async (change) => {
  expect(await attempt(change)).toMatchObject({ status: 'failed', fault: 'POW_REFUSED' });
});
