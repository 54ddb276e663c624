/** Judges every cheat of the table under a policy of checks: which fail a node or have no weight. Pure. */
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Facts } from '../checks/check.ts';
import type { CheckPolicy } from '../checks/check-policy.ts';
import { specOf } from '../checks/gpu-inventory.check.ts';
import type { Measured } from '../checks/measured.ts';
import { recordAfter } from '../checks/proof-record.ts';
import { type Judgement, judgeAll } from '../checks/verdict.ts';
import { documentOf, type EvidenceDocument } from '../evidence/document.ts';
import { cycleEntryOf } from '../weights/cycle-entry.ts';
import { scoresOf } from '../weights/points.ts';
import type { WeightPolicy } from '../weights/weight-policy.ts';
import { CHEATS, type Cheat, cheatingFacts } from './cheats.ts';
import { honestFacts } from './honest-host.ts';

/** Time between two inspections, as VALIDATOR_CHECK_INTERVAL_S has it by default. */
export const INTERVAL_MS = 900_000;
/** Number of inspections of each host: a proof, and a day with other offers after which it is no longer valid. */
const LOOKS = 98;

/** `fails`, `no weight`: the cheat counts. `recorded`: a check finds it, without effect. `passes`: no check finds it. */
export const OUTCOMES = ['fails', 'no weight', 'recorded', 'passes'] as const;
export type Outcome = (typeof OUTCOMES)[number];
export const COUNTING: ReadonlySet<Outcome> = new Set(['fails', 'no weight']);

export type Coverage = {
  cheat: Cheat;
  outcome: Outcome;
  /** Checks and reason codes that find it in the inspection that decides. */
  reasons: readonly string[];
  /** Number of inspections after which it counts, or is recorded; null if it passes. */
  looks: number | null;
  /** Points of the host from then on, in percent of an honest host. */
  earnsPercent: number;
};

export type CoverageOptions = { atMs: number; checks: CheckPolicy; weights: WeightPolicy };

/** Any valid hotkey, id and hash. */
const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY' as Hotkey;
const ID = '0'.repeat(64);

export const coverageOf = (options: CoverageOptions): Coverage[] =>
  CHEATS.map((cheat) => coverageOfCheat(cheat, options));

/** Inspects the cheating host once per interval until an inspection counts. */
export function coverageOfCheat(cheat: Cheat, options: CoverageOptions): Coverage {
  const { atMs, weights, checks } = options;
  const honest = honestFacts({ atMs, hotkey: HOTKEY, checks });
  const most = pointsOf(documentAfter(honest, judgeAll(honest, 0), weights), weights);
  let memory: Memory = {
    streaks: {},
    streak_times: {},
    found: {},
    accepted: null,
    proof_record: null,
  };
  let recorded: Coverage | null = null;
  /** Points by results of the checks, because most inspections repeat the one before. */
  const points = new Map<string, bigint>();
  let earnsPercent = 100;
  for (let look = 1; look <= LOOKS; look += 1) {
    const facts = factsAt(cheat, look, memory, options);
    const judgement = judgeAll(facts, 0);
    const { report } = judgement;
    memory = memoryAfter(memory, facts, judgement);
    const reasons = reasonsIn(report);
    const results = [report.verdict, facts.executor.rented, ...reasons].join();
    const earned =
      points.get(results) ?? pointsOf(documentAfter(facts, judgement, weights), weights);
    points.set(results, earned);
    earnsPercent = most === 0n ? 0 : Number((earned * 100n) / most);
    const found = { cheat, reasons, looks: look, earnsPercent };
    if (report.verdict === 'failed') return { ...found, outcome: 'fails' };
    if (report.verdict === 'verified' && earned === 0n) return { ...found, outcome: 'no weight' };
    if (reasons.length > 0) recorded ??= { ...found, outcome: 'recorded' };
  }
  const passed: Coverage = { cheat, reasons: [], looks: null, earnsPercent, outcome: 'passes' };
  return { ...(recorded ?? passed), earnsPercent };
}

type Memory = Pick<Measured, 'streaks' | 'streak_times' | 'found' | 'accepted' | 'proof_record'>;

function factsAt(
  cheat: Cheat,
  look: number,
  memory: Memory,
  { atMs, checks }: CoverageOptions,
): Facts {
  const nowMs = atMs + (look - 1) * INTERVAL_MS;
  const seen = cheatingFacts(honestFacts({ atMs: nowMs, hotkey: HOTKEY, checks }), cheat, look);
  const proof_record = recordAfter(memory.proof_record, seen);
  const known = { ...memory, proof_record, interval_ms: INTERVAL_MS };
  return { ...seen, measured: { ...seen.measured, ...known } };
}

/** The document that a validator would store; the hashes of its policies have no effect on the points. */
function documentAfter(
  facts: Facts,
  { report }: Pick<Judgement, 'report'>,
  { version: policyVersion }: WeightPolicy,
): EvidenceDocument {
  const { receivedMs: nowMs } = facts;
  const run = { facts, transportFailures: 0, report, startedMs: nowMs, finishedMs: nowMs };
  const hashes = { policyHash: ID, checkPolicyHash: ID };
  const place = { seq: 1, previous: null, validator: HOTKEY, policyVersion, ...hashes };
  return documentOf(run, place);
}

/** The executor's cards are accepted at its first pass. */
function memoryAfter(
  { accepted }: Memory,
  { inventory, measured: { proof_record } }: Facts,
  { streaks, streakTimes: streak_times, found, report }: Judgement,
): Memory {
  const after = { streaks, streak_times, found, proof_record };
  const isAccepted = report.verdict === 'verified' && inventory !== null;
  if (accepted !== null || !isAccepted) return { ...after, accepted };
  const gpu_uuids = inventory.gpu.devices.map(({ uuid }) => uuid);
  return { ...after, accepted: { spec: specOf(inventory), gpu_uuids } };
}

/** Failed checks of a document with their reason codes, whatever their mode. */
export const reasonsIn = ({ checks }: Pick<EvidenceDocument, 'checks'>): string[] =>
  checks.flatMap(({ check_id, reason_code }) =>
    reason_code === null ? [] : [`${check_id} ${reason_code}`],
  );

/** Points of the executor of a document in one cycle, as if it had been up for long. */
export function pointsOf(document: EvidenceDocument, weights: WeightPolicy): bigint {
  const uptimeMinutes = weights.uptime.full_minutes;
  const past = { failurePpm: 0, uptimeMinutes, runtimeProven: false };
  const entry = cycleEntryOf(document, ID, past);
  const entries = entry === null ? [] : [entry];
  const [score] = scoresOf({ number: 1, entries }, weights, false);
  return score?.points ?? 0n;
}
