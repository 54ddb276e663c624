/** Computes a stored epoch again from what is stored, down to the documents, and compares byte for byte (validator reference 7). */
import type { LatestSetWeights } from '#shared/central-api/set-weights.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { findCheckPolicy } from '../checks/check-policy.store.ts';
import { isJudgedRight, readDocument } from '../evidence/evidence.document.ts';
import { findEvidence } from '../evidence/evidence.store.ts';
import type { EpochRow, Ledger } from '../ledger/ledger.tables.ts';
import { computeWeights } from './compute-weights.ts';
import { lengthOf, readCycle } from './cycle.store.ts';
import { cycleEntryOf, type Past } from './cycle-entry.ts';
import type { CycleEntry, CycleSet } from './cycle-set.ts';
import { epochRow, StoredInput } from './epoch-record.ts';
import { pastOf } from './past.ts';
import { WeightPolicy } from './weight-policy.ts';

export type Replay = {
  /** The row as it comes out now; null where its input is not whole any more. */
  row: EpochRow | null;
  /** Documents that say what the cycles do, judged again. */
  documents: number;
  /** Documents that are too old to be kept. */
  forgotten: number;
  /** What differs, in words; empty when nothing does. */
  problems: string[];
};

/** The input of a stored epoch, with its cycles; the numbers of those that are not kept any more. */
export async function storedInput(
  ledger: Ledger,
  row: EpochRow,
): Promise<{ input: CycleSet; missing: number[] }> {
  const stored = StoredInput.parse(JSON.parse(row.input_json));
  const input: CycleSet = { ...stored, cycles: [] };
  const missing: number[] = [];
  for (const number of stored.cycles) {
    const cycle = await readCycle(ledger, number);
    if (cycle === undefined) missing.push(number);
    else input.cycles.push(cycle);
  }
  return { input, missing };
}

/** The policy that an epoch was computed by. */
export const storedPolicy = (row: EpochRow): WeightPolicy =>
  WeightPolicy.parse(JSON.parse(row.policy_json));

export async function replayEpoch(ledger: Ledger, stored: EpochRow): Promise<Replay> {
  const { input, missing } = await storedInput(ledger, stored);
  const problems = missing.map((number) => `cycle ${number} is not kept any more`);
  const row = missing.length > 0 ? null : recomputed(input, stored);
  if (row !== null) problems.push(...differencesOf(row, stored));
  else if (missing.length === 0) problems.push('the burn recipient is not registered');
  const under = { policy: storedPolicy(stored), policyHash: stored.policy_hash };
  let documents = 0;
  let forgotten = 0;
  for (const { number, entries } of input.cycles) {
    for (const entry of entries) {
      const evidence = await findEvidence(ledger, entry.evidence_id);
      if (evidence === undefined) {
        forgotten += 1;
        continue;
      }
      documents += 1;
      const past = await pastAgain(ledger, number, entry, under);
      const problem = await problemOf(ledger, entry, evidence, past);
      if (problem !== null) problems.push(`evidence ${entry.evidence_id}: ${problem}`);
    }
  }
  return { row, documents, forgotten, problems };
}

function recomputed(input: CycleSet, stored: EpochRow): EpochRow | null {
  const policy = storedPolicy(stored);
  const result = computeWeights(input, policy);
  if (result === null) return null;
  // Written by us as a payload: its form is known.
  const { current_block, version_key } = JSON.parse(stored.payload_json) as LatestSetWeights;
  const posted = {
    block: current_block ?? null,
    computedMs: stored.computed_ms,
    versionKey: version_key,
  };
  const row = epochRow({ input, policy, result, posted });
  return { ...row, state: stored.state };
}

function differencesOf(row: EpochRow, stored: EpochRow): string[] {
  return (Object.keys(stored) as (keyof EpochRow)[])
    .filter((name) => row[name] !== stored[name])
    .map((name) => `${name} was ${stored[name]}, and is ${row[name]}`);
}

/** As the cycles before give it under the epoch's policy; what its first cycle and other policies left is believed. */
async function pastAgain(
  ledger: Ledger,
  cycle: number,
  entry: CycleEntry,
  under: { policy: WeightPolicy; policyHash: string },
): Promise<PastUnder> {
  const { executor_id: executorId, verdict } = entry;
  const lengthMs = await lengthOf(ledger, executorId, cycle);
  if (lengthMs === undefined) return { past: pastIn(entry), policyHash: null };
  const moment = { executorId, cycle, verdict, lengthMs };
  const past = await pastOf(ledger, moment, under.policy);
  const policyHash = past.isFirst ? null : under.policyHash;
  return { past, policyHash };
}

/** It counts for documents of that policy only. */
type PastUnder = { past: Past; policyHash: string | null };

const pastIn = (entry: CycleEntry): Past => ({
  failurePpm: entry.failure_ppm,
  uptimeMinutes: entry.uptime_minutes,
});

async function problemOf(
  ledger: Ledger,
  entry: CycleEntry,
  evidence: { id: string; document: string; signature: string },
  { past, policyHash }: PastUnder,
): Promise<string | null> {
  const read = readDocument(evidence);
  if ('problem' in read) return read.problem;
  const checks = await findCheckPolicy(ledger, read.document.check_policy_hash);
  if (!isJudgedRight(read.document, checks)) return 'its inputs give another verdict';
  const counts = read.document.policy_hash === policyHash;
  const again = cycleEntryOf(read.document, evidence.id, counts ? past : pastIn(entry));
  const isSame = canonicalJson(again) === canonicalJson(entry);
  return isSame ? null : 'the cycle says something else';
}
