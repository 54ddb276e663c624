/**
 * Dishonest agents, each detected by the check meant for that kind of cheating; and honest agents under difficult
 * conditions.
 */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createValidator, type Validator } from '../../validator/app.ts';
import { readCheckPolicy } from '../../validator/checks/check-policy.ts';
import type { RentalFacts } from '../../validator/checks/measured.ts';
import { everyCard, sourcesChanged, withGpu } from '../../validator/coverage/cheats.ts';
import { COUNTING, coverageOf, pointsOf, reasonsIn } from '../../validator/coverage/coverage.ts';
import { USUAL_MS } from '../../validator/coverage/honest-host.ts';
import { EvidenceDocument } from '../../validator/evidence/document.ts';
import { findEvidence, lastEvidence } from '../../validator/evidence/evidence.store.ts';
import type { LineSize } from '../../validator/inspection/lines/measure-line.ts';
import { type ProofSize, SMALL_PROOF } from '../../validator/inspection/proof/host-proof.ts';
import { conductOf } from '../../validator/simulate/fleet/cheating-hosts.ts';
import {
  AGENT_DIGEST,
  type Conduct,
  DIGEST,
  HONEST,
} from '../../validator/simulate/fleet/conduct.ts';
import { openEvidenceStore } from '../../validator/store/evidence-store.ts';
import type { EvidenceStore } from '../../validator/store/tables.ts';
import { releaseOf } from '../../validator/updates/release.state.ts';
import { addRelease } from '../../validator/updates/release.store.ts';
import { cycleEntryOf } from '../../validator/weights/cycle-entry.ts';
import { exportEvidence } from '../../validator/weights/evidence-export.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../../validator/weights/weight-policy.ts';
import { addConductedAgent, type ConductedAgent, LISTEN } from '../fakes/agents/conducted-agent.ts';
import { createTestMarket, type TestMarket, testSigner } from '../fakes/scenes/market-fixture.ts';
import { goldenPolicy } from '../fixtures/cycle-set.ts';
import { testInventory } from '../fixtures/host-inventory.ts';

const CYCLE_MS = 60_000;
/** Time of the manual clock at its start. */
const START_MS = 1_800_000_000_000;
/** Number of inspections of a cheat that no check finds. */
const UNDETECTED_CYCLES = 3;
/** Bytes of one message in each direction. */
const LINE_BYTES = 64 * 1024;
const LINE: LineSize = {
  firstBytes: LINE_BYTES,
  mostBytes: LINE_BYTES,
  enoughMs: 1_000,
  mostMs: 5_000,
};
const FAST = { last_down_kbit: 1_000_000, last_up_kbit: 1_000_000 };
const log = createLog({ name: 'test', level: 'silent' });

/** The agents of this test fill memory and disk in their test program. */
const FILL = { kind: 'fill', lanes: 1, lane_blocks: 64, steps: 16, readMs: 20_000 } as const;
const PROOF: ProofSize = { ...SMALL_PROOF, memory: FILL, disk: FILL };

/** Proof times of other executors with the same hardware. */
const PACES = ['one', 'two', 'three'].flatMap((executor_id) =>
  [
    { device: 'cpu' as const, model: 'Test CPU x32, work 3' },
    { device: 'gpu' as const, model: 'NVIDIA H100 80GB HBM3:2, work 3' },
  ].map((pace) => ({ ...pace, executor_id, mean_ms: USUAL_MS, samples: 10 })),
);

/** The default policies. */
const POLICY = readCheckPolicy();
const WEIGHTS = readWeightPolicy(DEFAULT_POLICY_FILE);

let market: TestMarket;
/** The first agent cheats. The second is honest, so its results show what an agent of the fleet can reach. */
const nodes: ConductedAgent[] = [];
/** Id of an executor without an agent; its inspection takes little time. */
let absent: string;
let conduct: Conduct;
let second: Conduct;
let store: EvidenceStore;
let validator: Validator;
let centralUrl: string;

beforeAll(async () => {
  market = await createTestMarket();
  centralUrl = `${await market.server.listen(LISTEN)}/api`;
  nodes.push(await addConductedAgent(market, () => conduct));
  nodes.push(await addConductedAgent(market, () => second));
  absent = (await market.addNode({ gpus: 2 })).id;
});
afterAll(async () => {
  await Promise.all(nodes.map(({ server }) => server.close()));
  await market.close();
});

beforeEach(async () => {
  // One clock serves both agents: only the proofs of the first agent advance it.
  [conduct, second] = [HONEST, { ...HONEST, proofMs: 0, cardsMs: 0 }];
  store = await openEvidenceStore(':memory:');
  const seen_ms = market.clock.now();
  const paces = PACES.map((pace) => ({ ...pace, seen_ms }));
  await store.insertInto('proof_paces').values(paces).execute();
  // The store contains a high bandwidth of another executor, so the validator's own network connection is fast.
  await store.insertInto('lines').values(fastLineOf(absent)).execute();
  // These agents accept no pods, so the store records a recent rental probe for both.
  await store
    .insertInto('rental_probes')
    .values(nodes.map(({ id }) => probeOf(id)))
    .execute();
  const known = { digest: AGENT_DIGEST, platforms: {} };
  const release = { version: 'stable', permille: 1_000, nowMs: market.clock.now() };
  await addRelease(store, releaseOf(known, undefined, release));
  validator = createValidator({
    clock: market.clock,
    random: systemRandom,
    log,
    signer: market.validator,
    store,
    centralUrl,
    centralHotkey: testSigner(5).hotkey,
    proof: PROOF,
    policy: { acceptSimulated: false, checks: POLICY },
    weightSettings: {
      policy: goldenPolicy(),
      metagraph: null,
      embedded: false,
      cycleMs: CYCLE_MS,
      epochMs: CYCLE_MS,
      retentionDays: 14,
      verdictDays: null,
    },
    checkIntervalMs: CYCLE_MS,
    agentTls: 'off',
    listIntervalMs: CYCLE_MS,
    line: LINE,
    releaseSource: {
      image: 'registry.example/agent',
      tag: 'stable',
      keyId: market.validator.hotkey,
      firstPermille: 1_000,
      expiryMs: CYCLE_MS,
    },
  });
});
afterEach(async () => {
  await validator.close();
  await store.destroy();
});

function probeOf(executor_id: string) {
  const result: RentalFacts = {
    status: 'passed',
    step: null,
    detail: '',
    ms: 1,
    at_ms: market.clock.now(),
    memory: null,
    pods: [],
    refused: false,
    repeated: false,
  };
  const [pod_id, ended_ms] = [systemRandom.uuid(), market.clock.now()];
  return {
    executor_id,
    pod_id,
    started_ms: ended_ms,
    ended_ms,
    result_json: JSON.stringify(result),
  };
}

const fastLineOf = (executorId: string) => ({
  executor_id: executorId,
  tried_ms: market.clock.now(),
  measured_ms: market.clock.now(),
  samples: 5,
  down_kbit: 1_000_000,
  up_kbit: 1_000_000,
  ...FAST,
  false_stream: null,
  refusals: 0,
});

/** Runs `times` cycles on the executors and returns the last evidence of executor `which`. */
async function runCycles(times: number, which = 0): Promise<EvidenceDocument> {
  for (let time = 0; time < times; time += 1) {
    await validator.runOnce();
    await market.clock.advance(CYCLE_MS + 1_000);
  }
  const last = await lastEvidence(store, nodes[which]?.id ?? '');
  const row = last && (await findEvidence(store, last.id));
  return EvidenceDocument.parse(JSON.parse(row?.document ?? ''));
}

/** A stream sent in an earlier test. */
const OLD_STREAM = new Uint8Array(LINE_BYTES).fill(7);
const AGAIN_MS = 6 * 60_000;

describe('a dishonest agent', () => {
  const rows = coverageOf({ atMs: START_MS, checks: POLICY, weights: WEIGHTS });

  const conducted = rows.flatMap((row) => {
    const change = row.cheat.hidden === undefined ? conductOf(row.cheat) : null;
    return change === null ? [] : [[row.cheat.cheat, row.outcome, row, change] as const];
  });

  it.each(conducted)(
    'that %s: %s, as the table of cheats states',
    async (_, outcome, { reasons, looks }, change) => {
      conduct = { ...HONEST, ...change };
      const document = await runCycles(looks ?? UNDETECTED_CYCLES);
      expect(reasonsIn(document)).toEqual(reasons);
      const hasPoints = pointsOf(document, WEIGHTS) > 0n;
      expect([document.verdict, hasPoints]).toEqual([
        outcome === 'fails' ? 'failed' : 'ok',
        !COUNTING.has(outcome),
      ]);
    },
  );

  it.each<[string, Conduct['said']]>([
    [
      'reports a hash of data that it did not receive',
      (data) => (typeof data === 'string' ? data.replace(/\w{64}/, DIGEST) : data),
    ],
    ['replays an old stream', (data) => (typeof data === 'string' ? data : OLD_STREAM)],
    ['ends its stream early', (data) => (typeof data === 'string' ? data : 'done')],
  ])('that %s is detected the second time: bandwidth BANDWIDTH_FALSE', async (_, said) => {
    conduct = { ...HONEST, said };
    await runCycles(1);
    await market.clock.advance(AGAIN_MS);
    const once = await runCycles(1);
    const twice = await runCycles(1);
    expect([reasonsIn(once), reasonsIn(twice)]).toEqual([[], ['bandwidth BANDWIDTH_FALSE']]);
    expect([once.verdict, twice.verdict]).toEqual(['ok', 'failed']);
  });
});

describe('an honest executor', () => {
  it('passes every check, and judging its evidence again returns the same verdict', async () => {
    const document = await runCycles(2);
    expect([reasonsIn(document), document.verdict]).toEqual([[], 'ok']);
    expect(
      document.checks
        .filter(({ message }) => message === 'unknown')
        .map(({ check_id }) => check_id),
    ).toEqual([
      'driver_library',
      'dind_runtime',
      'ssh_reach',
      'hidden_rental',
      'gpu_drop',
      'gpu_side_use',
      'pod_alive',
    ]);
    expect(document.pow).toMatchObject({
      roots: [expect.stringMatching(/^[0-9a-f]{64}$/)],
      ms: USUAL_MS,
      device: 'cpu',
    });
    expect(document.pow_gpu).toMatchObject({ device: 'gpu', ms: USUAL_MS });
    expect(document.pow_gpu?.cards.map(({ roots }) => roots.length)).toEqual([1, 1]);
    const filter = { executorId: null, keys: [market.validator] };
    expect(await exportEvidence(store, filter, () => undefined)).toEqual([]);
  });

  it('passes if kernel, driver or disk do not report some values, and if the engine does not answer at times', async () => {
    const inventory: Conduct['inventory'] = (whole) =>
      sourcesChanged(whole, ({ driver_gpus: cards }) => ({
        memory_kib: null,
        disk_kib: null,
        disk_writable: null,
        driver_library_sha256: null,
        // The driver reports no UUID for a card in a low-power state.
        driver_gpus: cards?.map((card) => ({ ...card, uuid: null })) ?? null,
      }));
    for (const egress of ['unknown', 'unknown', 'answers', 'unknown'] as const) {
      conduct = { ...HONEST, inventory, egress };
      const document = await runCycles(1);
      expect([reasonsIn(document), document.verdict]).toEqual([[], 'ok']);
    }
  });

  it('passes when load delays its proofs at times', async () => {
    for (const proofMs of [USUAL_MS, 5 * USUAL_MS, 5 * USUAL_MS, USUAL_MS, 5 * USUAL_MS]) {
      conduct = { ...HONEST, proofMs, cardsMs: proofMs };
      expect((await runCycles(1)).verdict).toBe('ok');
    }
  });

  it('passes with a slow link', async () => {
    conduct = { ...HONEST, delayMs: 1_500 };
    // Three failures in a row would fail the check: every cycle counts, and network time is not counted as work.
    for (let time = 0; time < 4; time += 1) {
      const { checks, verdict, pow, pow_gpu } = await runCycles(1);
      const warned = checks.filter(({ severity }) => severity === 'warning');
      expect([verdict, warned.map(({ check_id: id }) => id)]).toEqual(['ok', []]);
      expect([pow?.ms, pow_gpu?.ms]).toEqual([USUAL_MS, USUAL_MS]);
    }
  });

  it('that answers inventory requests slowly does not count as faster than its hardware', async () => {
    conduct = { ...HONEST, inventoryMs: 900 };
    const document = await runCycles(3);
    expect([reasonsIn(document), document.verdict]).toEqual([[], 'ok']);
    expect(document.pow?.ms).toBe(USUAL_MS);
  });

  it('is not compared when too few executors have the same hardware', async () => {
    await store.deleteFrom('proof_paces').where('executor_id', '=', 'three').execute();
    conduct = { ...HONEST, proofMs: 100, cardsMs: 100 };
    expect(reasonsIn(await runCycles(3))).toEqual([]);
  });

  it('passes when the validator’s own network connection may be the cause of low bandwidth', async () => {
    await store.updateTable('lines').set({ last_down_kbit: 5_000, last_up_kbit: 5_000 }).execute();
    conduct = { ...HONEST, lineMs: 50 };
    const document = await runCycles(2);
    expect([reasonsIn(document), document.verdict]).toEqual([[], 'ok']);
    expect(
      cycleEntryOf(document, DIGEST, { failurePpm: 0, uptimeMinutes: 0, runtimeProven: false }),
    ).toMatchObject({
      bandwidth_mbit: null,
    });
  });

  it('has a weight that uses its mean bandwidth', async () => {
    conduct = { ...HONEST, lineMs: 2 };
    const past = { failurePpm: 0, uptimeMinutes: 0, runtimeProven: false };
    expect(cycleEntryOf(await runCycles(2), DIGEST, past)).toMatchObject({ bandwidth_mbit: 131 });
  });
});

describe('an executor beside another one', () => {
  it('that lists another executor’s card is detected, and the card still counts for the first executor', async () => {
    expect((await runCycles(1)).verdict).toBe('ok');
    second = {
      ...second,
      inventory: (inventory) => {
        const { devices } = testInventory(nodes[0]?.id ?? '').gpu;
        const driver_gpus = devices.map(({ uuid, name }) => ({ uuid, model: name }));
        const sources = inventory.sources && { ...inventory.sources, driver_gpus };
        return { ...inventory, gpu: { ...inventory.gpu, devices }, sources };
      },
    };
    const document = await runCycles(1, 1);
    expect(reasonsIn(document)).toContain('gpu_uuid_unique GPU_DUPLICATE');
    expect((await runCycles(1)).verdict).toBe('ok');
  });
});

describe('on a rented host', () => {
  beforeAll(async () => {
    await market.report({ id: nodes[0]?.id ?? '', port: 1 });
    const { status, body } = await market.rent(await market.renter(), nodes[0]?.id ?? '');
    expect([status, body]).toEqual([200, expect.anything()]);
    await market.sync();
  });

  it('an honest executor passes, and no check disturbs its pod', async () => {
    const document = await runCycles(2);
    expect([reasonsIn(document), document.verdict]).toEqual([[], 'ok']);
    const decided = document.checks.filter(({ message }) => message !== 'unknown');
    expect(decided.map(({ check_id }) => check_id)).toEqual(
      expect.arrayContaining(['gpu_drop', 'pod_alive']),
    );
    const lines = store.selectFrom('lines').where('executor_id', '=', nodes[0]?.id ?? '');
    expect(await lines.selectAll().execute()).toEqual([]);
  });

  it('a lost card is detected', async () => {
    conduct = { ...HONEST, ...withGpu(({ devices }) => ({ devices: devices.slice(1) })) };
    const document = await runCycles(2);
    expect(reasonsIn(document)).toContain('gpu_drop RENTED_GPU_LOST');
    expect(document.verdict).toBe('failed');
  });

  it('a hidden process on a leased card is detected', async () => {
    conduct = { ...HONEST, ...everyCard({ processes: 2, outside_processes: 1 }) };
    const [once, twice] = [await runCycles(1), await runCycles(1)];
    expect([reasonsIn(once), once.verdict]).toEqual([[], 'ok']);
    expect(reasonsIn(twice)).toEqual(['gpu_side_use GPU_PROCESS_OUTSIDE_POD']);
  });
});
