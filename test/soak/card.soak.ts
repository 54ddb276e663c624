/** The GPU reader and the proof of work on a real NVIDIA card of this machine. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import nodeNvidiaSmi from 'node-nvidia-smi';
import type { Commitment } from '#shared/api/agent/challenges.ts';
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createNvidiaDriver } from '../../agent/gpu/nvidia/driver.ts';
import { createNvidiaSmi } from '../../agent/gpu/nvidia/nvidia-smi.ts';
import { amountOf, numberOf, textOf } from '../../agent/gpu/nvidia/values.ts';
import type { ProgramSession } from '../../agent/verify/challenges/proof-program.ts';
import {
  type CardSpeed,
  EXPECTED_SHARE,
  expectedMsOf,
  PROOF_OPERATIONS,
} from '../../validator/checks/card-times.ts';
import { readCheckPolicy } from '../../validator/checks/check-policy.ts';
import type { GpuProofFacts } from '../../validator/checks/measured.ts';
import {
  FULL_GPU_PROOF,
  type GpuProofSize,
  gpuProofFacts,
} from '../../validator/inspection/proof/gpu-proof.ts';
import { createVerifier, type Verifier } from '../../validator/inspection/proof/verifier.ts';
import { hostProgram } from '../fakes/agents/host-program.ts';
import { inventoryOf } from '../fixtures/inventory.ts';
import { figureAtMost, finding, type Row, ratioAtLeast, ratioAtMost } from '../measure/row.ts';
import { type CardProgram, cardProgram, challengesTo, compileForCards } from './card-program.ts';

const MS_PER_SECOND = 1_000;
const TERA = 1e12;
const NEVER = new AbortController().signal;
const CHALLENGES = 1_000;
const AT_ONCE = 8;
/** Most time of a proof relative to the policy's time, and least with a quarter of the card: the policy's own bound. */
const SLOWEST = readCheckPolicy().pow_slowest_permille / 1_000;

const LISTING = { timeoutMs: 30_000, maxOutputBytes: 65_536 };

type Print = (line: string) => void;

/** Rejects with ConfigError if this machine has no NVIDIA card, with another error without a compiler for it. */
export async function cardMeasurements(print: Print): Promise<Row[]> {
  const listed = await runCommand('nvidia-smi', ['-L'], LISTING).catch(() => null);
  if (listed === null || listed.exitCode !== 0 || listed.stdout.trim() === '') {
    throw new ConfigError('gpu needs an NVIDIA card and its driver: `nvidia-smi -L` lists no card');
  }
  const folder = mkdtempSync(join(tmpdir(), 'podwright-card-'));
  const verifier = createVerifier();
  try {
    const { devices, row } = await readerRow(print);
    const [card] = devices;
    if (card === undefined) throw new Error('nvidia-smi lists no card on this machine');
    print(`${devices.length} × ${card.name}; the proof is compiled for it and run on ${card.uuid}`);
    const whole = cardProgram(await compileForCards('proof', folder));
    const exact = await exactnessRow(whole, card.uuid, print);
    const quarter = cardProgram(await compileForCards('quarter', folder));
    return [row, exact, ...(await timeRows({ card, whole, quarter, verifier, print }))];
  } finally {
    await verifier.close();
    rmSync(folder, { recursive: true });
  }
}

type Texts = { [name: string]: string | undefined };
type TheirGpu = {
  $: { id: string };
  uuid?: string;
  product_name?: string;
  fb_memory_usage?: Texts;
  utilization?: Texts;
  temperature?: Texts;
  gpu_power_readings?: Texts;
  clocks?: Texts;
};
type TheirLog = { driver_version?: string; cuda_version?: string; gpu?: TheirGpu | TheirGpu[] };

/** Accepted differences of values that change between two readings of an idle card. */
const MEMORY_MIB = 64;
const DEGREES = 3;
const WATTS = 15;
const PERCENT = 10;

/** Compares the agent's reading with `nvidia-smi -q -x`, as another package parses it. */
async function readerRow(print: Print): Promise<{ devices: readonly GpuDevice[]; row: Row }> {
  const smi = createNvidiaSmi({ clock: systemClock, runCommand });
  const reading = await createNvidiaDriver({ smi, clock: systemClock }).read();
  if (reading.error !== null) print(`the reader reports: ${reading.error}`);
  const theirs = await theirReading();
  const differences: string[] = [];
  let compared = 0;
  const compare = (name: string, our: unknown, their: unknown) => {
    compared += 1;
    if (our !== their) differences.push(`${name}: ${our} instead of ${their}`);
  };
  const near = (name: string, our: number | null, their: number | null, most: number) => {
    compared += 1;
    const isNear = our === null || their === null ? our === their : Math.abs(our - their) <= most;
    if (!isNear) differences.push(`${name}: ${our} instead of ${their}`);
  };
  compare('driver version', reading.driverVersion, textOf(theirs.driver_version));
  compare('CUDA version', reading.cudaVersion, textOf(theirs.cuda_version));
  const cards = [theirs.gpu ?? []].flat();
  compare('number of cards', reading.devices.length, cards.length);
  for (const [at, their] of cards.entries()) {
    const our = reading.devices[at];
    if (our === undefined) continue;
    const power = their.gpu_power_readings ?? {};
    compare('uuid', our.uuid, textOf(their.uuid));
    compare('name', our.name, textOf(their.product_name));
    compare('bus id', our.pci_bus_id, their.$.id);
    compare('memory', our.memory_total_mib, amountOf(their.fb_memory_usage?.['total']));
    near('used memory', our.memory_used_mib, amountOf(their.fb_memory_usage?.['used']), MEMORY_MIB);
    near(
      'utilization',
      our.utilization_percent,
      numberOf(their.utilization?.['gpu_util']),
      PERCENT,
    );
    near('temperature', our.temperature_c, numberOf(their.temperature?.['gpu_temp']), DEGREES);
    const draw = power['instant_power_draw'] ?? power['power_draw'];
    near('power draw', our.power_draw_w, amountOf(draw), WATTS);
    compare('power limit', our.power_limit_w, amountOf(power['current_power_limit']));
    compare(
      'default power limit',
      our.power_default_limit_w,
      amountOf(power['default_power_limit']),
    );
    compare('maximum power limit', our.power_max_limit_w, amountOf(power['max_power_limit']));
  }
  for (const difference of differences) print(`reader: ${difference}`);
  const name = `values that differ from nvidia-smi -q -x, of ${compared}`;
  const devices = reading.devices.map((device) => ({
    ...device,
    leased_by: null,
    lease_state: 'free' as const,
    cordoned: null,
  }));
  return { devices, row: figureAtMost(name, differences.length, '', 0) };
}

function theirReading(): Promise<TheirLog> {
  return new Promise((resolve, reject) => {
    nodeNvidiaSmi((error, data) => {
      if (error) reject(new Error(String(error)));
      else resolve(data.nvidia_smi_log as TheirLog);
    });
  });
}

/** Compares the program with the verifier's computation over random challenges, byte for byte. */
async function exactnessRow(program: CardProgram, uuid: string, print: Print): Promise<Row> {
  let [next, wrong] = [0, 0];
  const worker = async () => {
    while (next < CHALLENGES) {
      next += 1;
      if (next % 200 === 0) print(`${next} of ${CHALLENGES} random challenges`);
      if (!(await isExact(program, uuid))) wrong += 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const name = `answers of ${CHALLENGES} random challenges that differ from the verifier's`;
  return figureAtMost(name, wrong, '', 0);
}

const SIZE_STEP = 16;
const LANE_STEP = 64;

async function isExact(program: CardProgram, uuid: string): Promise<boolean> {
  const { int, bytes } = systemRandom;
  const n = SIZE_STEP * (4 + int(9));
  const product = { n, rounds: 1 + int(2), seed: bytes(32) };
  const fill = { layout: { lanes: 1 + int(2), laneBlocks: LANE_STEP }, seed: bytes(32) };
  const nonce = Buffer.from(bytes(32)).toString('hex');
  const rows = [{ round: 0, seed: product.seed, indices: [0, int(n), n - 1] }];
  const answers = [program, hostProgram()].map(async (each) => {
    const started = await each.start(uuid, fill, { image: '', deadlineMs: 0, signal: NEVER });
    if ('fault' in started) return started.fault;
    const session: ProgramSession = started.done;
    const done = [
      await session.fill(fill, NEVER),
      await session.product(product, NEVER),
      await session.rows(rows, NEVER),
      await session.walk({ nonce, steps: 20 }, NEVER),
      await session.leaves([0, 15], NEVER),
    ];
    await session.end();
    return JSON.parse(JSON.stringify(done).replaceAll(/"(fill_ms|ms)":[0-9.]+/g, '"$1":0'));
  });
  const [card, host] = await Promise.all(answers);
  return isDeepStrictEqual(card, host);
}

type Times = {
  facts: GpuProofFacts;
  productMs: number;
  fillMs: number | null;
  walkMs: number | null;
};

async function timeRows({
  card,
  whole,
  quarter,
  verifier,
  print,
}: {
  card: GpuDevice;
  whole: CardProgram;
  quarter: CardProgram;
  verifier: Verifier;
  print: Print;
}): Promise<Row[]> {
  const speed = readCheckPolicy().card_times?.[card.name];
  const [freeSize, filledSize] = [{ ...FULL_GPU_PROOF, fillPermille: 0 }, FULL_GPU_PROOF];
  const measure = (program: CardProgram, size: GpuProofSize) =>
    timesOf(program, card, { size, verifier });
  const free = await measure(whole, freeSize);
  const filled = await measure(whole, filledSize);
  const [freePart, filledPart] = [
    await measure(quarter, freeSize),
    await measure(quarter, filledSize),
  ];
  for (const [name, times] of Object.entries({ free, filled, freePart, filledPart })) {
    print(`${name}: ${JSON.stringify({ ...times, facts: { ...times.facts, cards: undefined } })}`);
  }
  const all = [free, filled, freePart, filledPart];
  const proven = all.filter(({ facts }) => facts.status === 'proven').length;
  const seconds = ({ facts }: Times) => (facts.ms ?? Number.NaN) / MS_PER_SECOND;
  const part = (name: string, ours: Times, reference: Times) =>
    ratioAtLeast(
      name,
      's',
      'the whole card',
      { ours: seconds(ours), reference: seconds(reference) },
      SLOWEST,
    );
  return [
    finding('proofs that the validator accepts, of 4', proven, '', 'all', proven === all.length),
    finding('proof with free memory', seconds(free), 's', 'any', true),
    ...ofModel(speed, filled),
    finding('fill of the memory', (filled.fillMs ?? Number.NaN) / MS_PER_SECOND, 's', 'any', true),
    figureAtMost('walk over the memory', filled.walkMs ?? Number.NaN, 'ms', 2_000),
    part('a quarter of the multiprocessors, free memory', freePart, free),
    part('a quarter of the multiprocessors, filled memory', filledPart, filled),
  ];
}

/** Rows that compare with the policy's figures for the model. */
function ofModel(speed: CardSpeed | undefined, filled: Times): Row[] {
  if (speed === undefined) throw new Error('the default policy has no time for this model');
  const seconds = {
    ours: (filled.facts.ms ?? Number.NaN) / MS_PER_SECOND,
    reference: expectedMsOf(speed) / MS_PER_SECOND,
  };
  const rate = PROOF_OPERATIONS / TERA / (filled.productMs / MS_PER_SECOND);
  return [
    ratioAtMost('proof with filled memory', 's', "the policy's time", seconds, SLOWEST),
    ratioAtLeast(
      'products with filled memory',
      'TOPS',
      'published peak',
      { ours: rate, reference: speed.int8_tops },
      EXPECTED_SHARE,
    ),
  ];
}

/** Lets the validator prove the card, and returns the times that it and the program measured. */
async function timesOf(
  program: CardProgram,
  card: GpuDevice,
  { size, verifier }: { size: GpuProofSize; verifier: Verifier },
): Promise<Times> {
  const executorId = systemRandom.uuid();
  const stopping = new AbortController();
  const client = challengesTo(program, executorId, stopping.signal);
  let committed: Commitment | null = null;
  let walkMs: number | null = null;
  const watched: typeof client = {
    challenge: async (request) => {
      committed = await client.challenge(request);
      return committed;
    },
    openChallenge: async (id, request) => {
      const beganMs = systemClock.monotonicMs();
      const opening = await client.openChallenge(id, request);
      if (request.fill?.walk) walkMs = systemClock.monotonicMs() - beganMs;
      return opening;
    },
  };
  const base = inventoryOf({ executorId });
  const inventory = { ...base, gpu: { ...base.gpu, devices: [card] } };
  const expected = { modelMs: null, ownMs: null, others: 0 };
  const deps = { client: watched, clock: systemClock, random: systemRandom, verifier };
  const facts = await gpuProofFacts(deps, {
    executorId,
    size,
    inventory,
    expected,
    roundTripMs: 0,
  });
  stopping.abort();
  if (facts === null) throw new Error('the card is not whole');
  const [proof] = (committed as Commitment | null)?.cards ?? [];
  return {
    facts,
    productMs: proof?.product?.ms ?? Number.NaN,
    fillMs: proof?.memory?.fill_ms ?? null,
    walkMs,
  };
}
