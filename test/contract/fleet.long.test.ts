/**
 * A fleet under the default policies: honest but unusual hosts pass for a day; hosts that cheat fail or lose their
 * weight.
 */
import { expect, it } from 'vitest';
import { readCheckPolicy } from '../../validator/checks/check-policy.ts';
import { COUNTING, coverageOf, pointsOf, reasonsIn } from '../../validator/coverage/coverage.ts';
import { USUAL_MS } from '../../validator/coverage/honest-host.ts';
import { type CheckRun, documentOf } from '../../validator/evidence/document.ts';
import { cheatBefore } from '../../validator/simulate/fleet/cheating-hosts.ts';
import { HONEST } from '../../validator/simulate/fleet/conduct.ts';
import { createHostFleet } from '../../validator/simulate/fleet/host-fleet.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../../validator/weights/weight-policy.ts';
import { createManualClock } from '../fakes/manual-clock.ts';
import { createFleetValidator } from '../fakes/scenes/fleet-validator.ts';
import { createTestStore } from '../fakes/scenes/test-evidence-store.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { hotkey } from '../fixtures/cycle-set.ts';
import { HONEST_HOSTS, inOutage } from './honest-hosts.cases.ts';

const CYCLES = 96;
/** Number of cycles within which each cheat that a check finds must fail or lose its weight. */
const CHEAT_CYCLES = 8;
/** Timeout of the test in milliseconds: thousands of inspections take long on a busy computer. */
const TIMEOUT_MS = 900_000;
const INTERVAL_MS = 900_000;
/** Hosts without a card that claim eight: they fail within two cycles. */
const WITHOUT_CARDS = ['invented_proofs', 'unproven_liar'];
const HASH = '0'.repeat(64);
const checks = readCheckPolicy();
const weights = readWeightPolicy(DEFAULT_POLICY_FILE);
const clock = createManualClock();
const rows = coverageOf({ atMs: clock.now(), checks, weights });

/** Cheats that a check can find within the time of this test. */
const performed = rows.filter(
  ({ cheat, looks }) => cheat.hidden === undefined && (looks ?? 1) <= CHEAT_CYCLES,
);

/** Proof times of other executors with the same hardware. */
const PACES = ['one', 'two', 'three'].flatMap((executor_id) =>
  [
    { device: 'cpu' as const, model: 'Test CPU x32, work 3' },
    { device: 'gpu' as const, model: 'NVIDIA H100 80GB HBM3:2, work 3' },
  ].map((pace) => ({ ...pace, executor_id, mean_ms: USUAL_MS, samples: 10 })),
);

/** Points of the host in the cycle of this run. */
function pointsAfter(run: CheckRun): bigint {
  const place = { seq: 1, previous: null, validator: hotkey(1), policyVersion: 1 };
  const hashes = { policyHash: HASH, checkPolicyHash: HASH };
  return pointsOf(documentOf(run, { ...place, ...hashes }), weights);
}

it(
  `fails none of ${HONEST_HOSTS.length} honest hosts in ${CYCLES} cycles, and counts the cheats as the table states`,
  async () => {
    const store = await createTestStore();
    const seen_ms = clock.now();
    const paces = PACES.map((pace) => ({ ...pace, seen_ms }));
    await store.insertInto('proof_paces').values(paces).execute();
    const fleet = createHostFleet({ clock, wait: clock.advance });
    const honest = HONEST_HOSTS.map((each) => ({ ...each, model: fleet.add() }));
    const cheats = new Map(
      performed.map((row) => {
        const model = fleet.add();
        return [model.id, { ...row, model }] as const;
      }),
    );
    const names = new Map(honest.map(({ model, host }) => [model.id, host]));
    const failed: string[] = [];
    const counted = new Map<string, string>();
    /** Cycle in which a cheat failed first. */
    const failedIn = new Map<string, number>();
    let cycle = 0;
    const validator = createFleetValidator({
      fleet,
      clock,
      random: createSeededRandom(1),
      store,
      checks,
      intervalMs: INTERVAL_MS,
      onRun(run) {
        const { id } = run.facts.executor;
        const { verdict } = run.report;
        const name = names.get(id);
        if (name !== undefined && verdict === 'failed') {
          failed.push(`${name}, cycle ${cycle}: ${reasonsIn(run.report).join(', ')}`);
        }
        const cheat = cheats.get(id);
        if (cheat === undefined) return;
        const hasWeight = verdict === 'withheld' || pointsAfter(run) > 0n;
        if (verdict !== 'failed' && hasWeight) return;
        const outcome = verdict === 'failed' ? 'fails' : 'no weight';
        if (!counted.has(cheat.cheat.id)) counted.set(cheat.cheat.id, outcome);
        if (verdict === 'failed') failedIn.set(cheat.cheat.id, cycle);
      },
    });
    for (cycle = 1; cycle <= CYCLES; cycle += 1) {
      for (const { model, before } of honest) {
        model.conduct = HONEST;
        await before(model, cycle, { nowMs: clock.now(), fleet });
        model.conduct = inOutage(model.conduct, cycle);
      }
      for (const [, { cheat, model }] of cheats) {
        if (!fleet.hosts().includes(model)) continue;
        await cheatBefore(cheat, model, { cycle, fleet });
        model.conduct = inOutage(model.conduct, cycle);
      }
      await validator.runOnce();
      // A cheat that has failed or lost its weight needs no further inspection.
      for (const [id, { cheat }] of cheats) {
        const isDone = WITHOUT_CARDS.includes(cheat.id) ? failedIn : counted;
        if (isDone.has(cheat.id) || cycle === CHEAT_CYCLES) fleet.remove(id);
      }
      await clock.advance(INTERVAL_MS);
    }
    await store.destroy();
    expect(failed).toEqual([]);
    const expected = performed.filter(({ outcome }) => COUNTING.has(outcome));
    expect(Object.fromEntries(counted)).toEqual(
      Object.fromEntries(expected.map(({ cheat, outcome }) => [cheat.id, outcome])),
    );
    for (const id of WITHOUT_CARDS) expect(failedIn.get(id)).toBeLessThanOrEqual(2);
  },
  TIMEOUT_MS,
);
