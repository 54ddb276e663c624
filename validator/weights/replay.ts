/** Recomputes a stored epoch, judges its documents again and compares byte for byte. */
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { createPolicyCache } from '../checks/check-policy.store.ts';
import { createHeadCache, mustExist } from '../evidence/chain-head.ts';
import { readDocument, reproducesVerdict } from '../evidence/document.ts';
import { findEvidence } from '../evidence/evidence.store.ts';
import { dropProblem } from '../evidence/header.ts';
import { isTrustedAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EpochRow, EvidenceHeadRow, EvidenceRow, EvidenceStore } from '../store/tables.ts';
import { createWeigher, type Weigher } from './compute-weights.ts';
import { cyclesOf, entryOf, existingCycles } from './cycle.store.ts';
import { cycleEntryOf, type ExecutorHistory, historyOf } from './cycle-entry.ts';
import type { Cycle, CycleEntry, CycleSetHead } from './cycle-set.ts';
import { epochChainProblems, signatureProblem } from './epoch-chain.ts';
import { epochRow, readInput, readPayload, readPolicy, uidsOf, weightOf } from './epoch-record.ts';
import type { WeightPolicy } from './weight-policy.ts';

export type Replay = {
  /** Recomputed row; null if part of its input was deleted or the burn recipient is not registered. */
  row: EpochRow | null;
  /** Number of documents that were judged again. */
  documents: number;
  /** Number of documents of passed checks that were dropped because of their age; their signed headers were verified. */
  dropped: number;
  /** Number of documents that were pruned because of their age. */
  forgotten: number;
  /** True if the recomputed row is identical to the stored one, but its signer is not trusted. */
  isOnlyUntrusted: boolean;
  /** Descriptions of the differences. */
  problems: string[];
};

/** A stored epoch whose weights were computed again under some policy; `missing` are the numbers of deleted cycles. */
export type StoredWeighing = {
  head: CycleSetHead;
  kept: number[];
  missing: number[];
  weigher: Weigher;
};

/** Calls `onCycle` for each stored cycle, one at a time in memory. Rejects if the row was altered. */
export async function weighStoredEpoch(
  store: EvidenceStore,
  row: EpochRow,
  policy: WeightPolicy,
  onCycle: (cycle: Cycle) => Promise<void> = async () => undefined,
): Promise<StoredWeighing> {
  const { cycles: numbers, ...head } = readInput(row);
  const kept = await existingCycles(store, numbers);
  const missing = numbers.filter((number) => !kept.includes(number));
  const weigher = createWeigher(policy, { count: kept.length, embedded: head.embedded });
  for await (const cycle of cyclesOf(store, kept)) {
    weigher.add(cycle);
    await onCycle(cycle);
  }
  return { head, kept, missing, weigher };
}

/** `keys` are the trusted signers. */
export async function replayEpoch(
  store: EvidenceStore,
  stored: EpochRow,
  keys: readonly TrustedHotkey[],
): Promise<Replay> {
  const policy = readPolicy(stored);
  const under = { policy, policyHash: stored.policy_hash, keys };
  const judged = { documents: 0, dropped: 0, forgotten: 0 };
  const headOf = createHeadCache(store, keys);
  const policyOf = createPolicyCache(store);
  const ofDocuments: string[] = [];
  const weighing = await weighStoredEpoch(store, stored, policy, async ({ number, entries }) => {
    for (const entry of entries) {
      const { executor_id: executor, evidence_id: id } = entry;
      const named = `cycle ${number}, executor ${executor}, evidence ${id}`;
      const evidence = await findEvidence(store, id);
      if (evidence === undefined) {
        if (await isMissing(store, number, entry, headOf))
          ofDocuments.push(`${named}: the document is missing`);
        else judged.forgotten += 1;
        continue;
      }
      if (evidence.document === null) {
        const problem = droppedProblem(entry, evidence, await headOf(executor), keys);
        if (problem === null) judged.dropped += 1;
        else ofDocuments.push(`${named}: ${problem}`);
        continue;
      }
      judged.documents += 1;
      const past = await recomputeHistory(store, number, entry, under);
      const problem = await problemOf(entry, evidence, { ...past, keys, policyOf });
      if (problem !== null) ofDocuments.push(`${named}: ${problem}`);
    }
  });
  const { missing } = weighing;
  const problems = missing.map((number) => `cycle ${number} was deleted`);
  const { validator } = weighing.head;
  const isTrusted = isTrustedAt(keys, validator, stored.computed_ms);
  if (!isTrusted) {
    problems.push(`the epoch is signed by ${validator}, which was not a trusted key at its time`);
  }
  const unsigned = signatureProblem(stored, validator);
  if (unsigned !== null) problems.push(unsigned);
  const row = missing.length > 0 ? null : recomputed(weighing, stored, policy);
  const differences = row === null ? [] : differencesOf(row, stored);
  problems.push(...differences);
  if (row === null && missing.length === 0) problems.push('the burn recipient is not registered');
  const ofChain = await epochChainProblems(store, keys);
  const isOnlyUntrusted = row !== null && differences.length === 0 && !isTrusted;
  return { row, ...judged, isOnlyUntrusted, problems: [...problems, ...ofChain, ...ofDocuments] };
}

type ReplayContext = { policy: WeightPolicy; policyHash: string; keys: readonly TrustedHotkey[] };

/** Returns true if an absent document should still be retained. */
async function isMissing(
  store: EvidenceStore,
  cycle: number,
  { executor_id: executorId }: CycleEntry,
  headOf: ReturnType<typeof createHeadCache>,
): Promise<boolean> {
  const stored = await entryOf(store, executorId, cycle);
  return stored === undefined || mustExist(await headOf(executorId), stored.start_ms);
}

/** Without its document, only the verdict of an entry can be compared with what was signed. */
function droppedProblem(
  entry: CycleEntry,
  evidence: EvidenceRow,
  head: EvidenceHeadRow | null,
  keys: readonly TrustedHotkey[],
): string | null {
  const problem = dropProblem(evidence, head, keys);
  if (problem !== null) return problem;
  const isSame = entry.verdict === evidence.verdict && entry.executor_id === evidence.executor_id;
  return isSame ? null : 'the cycle entry has another verdict or executor than the signed header';
}

function recomputed(
  { head, kept, weigher }: StoredWeighing,
  stored: EpochRow,
  policy: WeightPolicy,
): EpochRow | null {
  const result = weigher.result(head);
  if (result === null) return null;
  const { current_block, version_key } = readPayload(stored);
  const posted = {
    block: current_block ?? null,
    computedMs: stored.computed_ms,
    versionKey: version_key,
  };
  const row = epochRow({ input: { ...head, cycles: kept }, policy, result, posted }, stored);
  return { ...row, state: stored.state, signature: stored.signature };
}

const OTHER_INPUT =
  'epochs.input_json of this epoch, or a cycle that it names, was altered after the weights were computed';

function differencesOf(row: EpochRow, stored: EpochRow): string[] {
  return (Object.keys(stored) as (keyof EpochRow)[])
    .filter((name) => row[name] !== stored[name])
    .flatMap((name) => {
      if (name === 'payload_json') return payloadDifferences(row, stored);
      const difference = `${name} was ${stored[name]}, recomputed ${row[name]}`;
      return name === 'input_hash' ? `${difference}: ${OTHER_INPUT}` : difference;
    });
}

/** Lists the differences per uid, then those of the other fields. */
function payloadDifferences(row: EpochRow, stored: EpochRow): string[] {
  const [now, then] = [readPayload(row), readPayload(stored)];
  const found = [
    ...uidsOf(then, now)
      .filter((uid) => weightOf(then, uid) !== weightOf(now, uid))
      .map(
        (uid) =>
          `uid ${uid} was posted with weight ${weightOf(then, uid)}, the recomputed weight is ${weightOf(now, uid)}`,
      ),
    ...fieldDifferences({ ...then, uids: [], weights: [] }, { ...now, uids: [], weights: [] }),
  ];
  return found.length > 0 ? found : ['payload_json has another encoding'];
}

/** Describes each field in which two objects of the same shape differ. */
function fieldDifferences(then: object, now: object): string[] {
  const [before, after] = [Object.entries(then), new Map(Object.entries(now))];
  return before
    .map(([name, value]) => [name, JSON.stringify(value), JSON.stringify(after.get(name))])
    .filter(([, was, is]) => was !== is)
    .map(([name, was, is]) => `${name} was ${was}, recomputed ${is}`);
}

/**
 * Recomputes an executor's history under the epoch's policy. The stored values are used for the executor's first cycle
 * and for documents of other policies.
 */
async function recomputeHistory(
  store: EvidenceStore,
  cycle: number,
  entry: CycleEntry,
  under: ReplayContext,
): Promise<HistoryUnderPolicy> {
  const { executor_id: executorId, verdict } = entry;
  const stored = await entryOf(store, executorId, cycle);
  if (stored === undefined) return { past: pastIn(entry), policyHash: null };
  const moment = { executorId, cycle, verdict, lengthMs: stored.length_ms };
  const past = await historyOf(store, moment, under.policy);
  const policyHash = past.isFirst ? null : under.policyHash;
  return { past, policyHash };
}

/** A history that applies to documents of one policy. */
type HistoryUnderPolicy = { past: ExecutorHistory; policyHash: string | null };

const pastIn = (entry: CycleEntry): ExecutorHistory => ({
  failurePpm: entry.failure_ppm,
  uptimeMinutes: entry.uptime_minutes,
  runtimeProven: entry.runtime_proven,
});

async function problemOf(
  entry: CycleEntry,
  evidence: EvidenceRow,
  {
    past,
    policyHash,
    keys,
    policyOf,
  }: HistoryUnderPolicy & {
    keys: readonly TrustedHotkey[];
    policyOf: ReturnType<typeof createPolicyCache>;
  },
): Promise<string | null> {
  const read = readDocument(evidence, keys);
  if ('problem' in read) return read.problem;
  const checks = await policyOf(read.document.check_policy_hash);
  if (!reproducesVerdict(read.document, checks)) return 'its inputs reproduce another verdict';
  const counts = read.document.policy_hash === policyHash;
  const again = cycleEntryOf(read.document, evidence.id, counts ? past : pastIn(entry));
  if (canonicalJson(again) === canonicalJson(entry)) return null;
  const fields = again === null ? [] : fieldDifferences(entry, again);
  return `the cycle entry differs: ${fields.join('; ')}`;
}

/**
 * One line per uid with the posted weight and the weight under another policy; null without a registered burn
 * recipient.
 */
export async function weightsUnder(
  store: EvidenceStore,
  stored: EpochRow,
  policy: WeightPolicy,
): Promise<string[] | null> {
  const { head, missing, weigher } = await weighStoredEpoch(store, stored, policy);
  const result = weigher.result(head);
  if (result === null) return null;
  const posted = readPayload(stored);
  return [
    ...missing.map((number) => `without cycle ${number}, which was deleted`),
    `policy ${stored.policy_hash} -> ${result.policyHash}`,
    ...uidsOf(posted, result).map(
      (uid) => `uid ${uid}: ${weightOf(posted, uid)} -> ${weightOf(result, uid)}`,
    ),
  ];
}
