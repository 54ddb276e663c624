/** Explains an executor's weight, its last check, and how to raise the weight. */
import { microToUsd } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { trustedHead } from '../evidence/chain-head.ts';
import { type EvidenceDocument, readDocument } from '../evidence/document.ts';
import { findEvidence, lastEvidence } from '../evidence/evidence.store.ts';
import { dropProblem } from '../evidence/header.ts';
import { isTrustedAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EpochRow, EvidenceStore } from '../store/tables.ts';
import { poolsPpm } from './compute-weights.ts';
import type { CycleEntry, CycleSetHead } from './cycle-set.ts';
import { lastEpoch } from './epoch.store.ts';
import { signatureProblem } from './epoch-chain.ts';
import { type PostedWeights, readPayload, readPolicy, weightOf } from './epoch-record.ts';
import {
  FACTORS,
  type Factor,
  type MeanPoints,
  type Obstacle,
  POOLS,
  type Pool,
  pointsOf,
  poolOf,
  type Score,
} from './points.ts';
import { weighStoredEpoch } from './replay.ts';
import { ONE_PPM, rateOf, type WeightPolicy } from './weight-policy.ts';

export type Explained = {
  head: CycleSetHead;
  /** Means of all executors over `cycles` cycles. */
  meanPoints: readonly MeanPoints[];
  cycles: number;
  policy: WeightPolicy;
  posted: PostedWeights;
};

/** Pure. Null for an executor that was measured in none of the cycles. */
export function explainExecutor(executorId: string, explained: Explained): string[] | null {
  const { policy, cycles } = explained;
  const mean = explained.meanPoints.find((one) => one.executorId === executorId);
  if (mean === undefined) return null;
  const { latest } = mean;
  return [
    ...weightLines(mean, explained),
    '',
    'What its points are made of:',
    ...FACTORS.map((factor) => `  ${factor.padEnd(12)}${factorText(factor, latest, policy)}`),
    `  evidence    ${latest.entry.evidence_id}`,
    '',
    'What would raise it:',
    ...improvements(latest, policy, cycles).map((line) => `  - ${line}`),
  ];
}

function weightLines(mean: MeanPoints, explained: Explained): string[] {
  const { head, meanPoints, cycles, policy, posted } = explained;
  const { latest, points, measured, age, feesUusd } = mean;
  const { hotkey } = latest.entry;
  const uid = head.neurons.find((neuron) => neuron.hotkey === hotkey)?.uid;
  const weight = uid === undefined ? 0 : weightOf(posted, uid);
  const own = meanPoints.filter((one) => one.latest.entry.hotkey === hotkey).length;
  const window = Math.min(cycles, policy.window_cycles);
  return [
    `executor ${mean.executorId} of ${hotkey}`,
    uid === undefined
      ? 'Its hotkey is not registered: it gets no weight.'
      : `uid ${uid} has weight ${weight} in epoch ${head.epoch}, for ${own} executor${own === 1 ? '' : 's'}.`,
    `Points, from ${measured} of ${window} cycles; renters paid fees of ${microToUsd(Number(feesUusd))} USD in them:`,
    ...POOLS.map(
      (pool) => `  ${POOL_NAMES[pool].padEnd(13)}${poolText(points[pool], pool, explained)}`,
    ),
    age === 0
      ? `In the last cycle it had ${latest.points} points.`
      : `It was last measured ${age} cycle${age === 1 ? '' : 's'} before the last, with ${latest.points} points.`,
  ];
}

const POOL_NAMES: Readonly<Record<Pool, string>> = { mining: 'while rented', idle: 'while idle' };
const PERCENT = 100;

/** An executor's points in a pool, its share of the pool, and the pool's share of all weight. */
function poolText(own: bigint, pool: Pool, explained: Explained): string {
  const part = poolsPpm(registeredOf(explained), explained.head, explained.policy)[pool];
  const percent = `${(shareOfPool(own, pool, explained) * PERCENT).toFixed(2)} %`;
  const ofAll = `${(part / ONE_PPM) * PERCENT} % of all weight`;
  return `${own}, ${percent} of a pool with ${ofAll}`;
}

/** Means of executors with a registered hotkey: only these count. */
export function registeredOf({
  head,
  meanPoints,
}: Pick<Explained, 'head' | 'meanPoints'>): MeanPoints[] {
  const registered = new Set(head.neurons.map(({ hotkey }) => hotkey));
  return meanPoints.filter(({ latest }) => registered.has(latest.entry.hotkey));
}

/** Fraction of the points of all registered hotkeys in the pool, 0 to 1. */
export function shareOfPool(own: bigint, pool: Pool, explained: Explained): number {
  const all = registeredOf(explained).reduce((sum, { points }) => sum + points[pool], 0n);
  return all === 0n ? 0 : Number((own * BigInt(ONE_PPM)) / all) / ONE_PPM;
}

/** Facts from which the value of a factor is computed. */
export function factorText(factor: Factor, score: Score, policy: WeightPolicy): string {
  const { entry, factors } = score;
  const value = factors[factor];
  const of = `x ${(value / ONE_PPM).toFixed(6)}  `;
  switch (factor) {
    case 'unit':
      return `${microToUsd(value)} USD/h  ${gpusOf(entry)} at ${microToUsd(rateOf(policy, entry.gpu_model))}`;
    case 'uptime':
      return `${of}${entry.uptime_minutes} of ${policy.uptime.full_minutes} good minutes`;
    case 'runtime':
      return `${of}Docker-in-Docker ${entry.runtime_proven ? 'proven' : 'not proven'}`;
    case 'collateral':
      return `${of}${entry.collateral ? 'deposited' : 'none'}`;
    case 'incentive':
      return `${of}chat account ${entry.chat_linked === true ? 'linked' : 'not linked'}`;
    case 'dilution':
      return `${of}${entry.rented ? 'rented' : 'idle'}`;
    case 'stability':
      return `${of}failure average ${(entry.failure_ppm / ONE_PPM).toFixed(6)}`;
    case 'eligible':
      return `x ${value}         ${score.obstacles.map((each) => OBSTACLES[each]).join(', ') || 'no obstacle'}`;
  }
}

function gpusOf({
  gpu_count: count,
  gpu_model: model,
  weightless_gpus: weightless = 0,
}: CycleEntry) {
  const gpus = `${count} x ${model}`;
  return weightless === 0 ? gpus : `${gpus}, ${weightless} of them without a proof,`;
}

export const OBSTACLES: Readonly<Record<Obstacle, string>> = {
  failed: 'its checks failed',
  simulated: 'its GPUs are simulated',
  unproven: 'it has no proof of work of the last day',
  unknown_model: 'the policy has no rate for its GPU',
  price: 'its price is above the limit of the policy',
  bandwidth: 'its network connection is too slow',
  banned: 'its hotkey is banned',
};

const REMEDIES: Readonly<Record<Obstacle, string>> = {
  failed: 'Pass the checks: the last run failed, and nothing is earned without them.',
  simulated: 'Offer real GPUs: simulated ones earn nothing.',
  unproven: 'Pass a proof of work, as the checks pow_cpu and pow_gpu require it.',
  unknown_model: 'Ask the validator for a rate for this GPU: the policy has none.',
  price: 'Lower the price: it is above the limit of the policy for this GPU.',
  bandwidth: 'Get a faster network connection: its speed is below the minimum of the policy.',
  banned: 'Contact the validator: the hotkey is banned.',
};

/** Returns the changes that would raise the points of an executor, as sentences. */
export function improvements(score: Score, policy: WeightPolicy, cycles: number): string[] {
  const { entry, factors, obstacles } = score;
  const gain = (factor: Factor, best: number) => gainText(factors, factor, best);
  const lines: (string | false)[] = [
    ...obstacles.map((obstacle) => REMEDIES[obstacle]),
    factors.uptime < ONE_PPM &&
      `Keep the node up: ${policy.uptime.full_minutes - entry.uptime_minutes} more good minutes${gain('uptime', ONE_PPM)}.`,
    !entry.collateral &&
      policy.no_collateral_ppm < ONE_PPM &&
      `Deposit collateral${gain('collateral', ONE_PPM)}.`,
    entry.chat_linked !== true &&
      (policy.linked_chat_bonus_ppm ?? 0) > 0 &&
      `Link a chat account in the portal${gain('incentive', ONE_PPM + (policy.linked_chat_bonus_ppm ?? 0))}.`,
    !entry.runtime_proven &&
      policy.runtime_bonus_ppm > 0 &&
      `Offer the runtime for Docker-in-Docker; it counts after a passed check${gain('runtime', ONE_PPM + policy.runtime_bonus_ppm)}.`,
    entry.failure_ppm > 0 &&
      `Pass every check: the failure average falls with each pass${gain('stability', ONE_PPM)}.`,
    factors.dilution < ONE_PPM &&
      `Get rented, or offer a scarcer GPU: more GPUs of this kind are idle than the policy rewards${gain('dilution', ONE_PPM)}.`,
    poolOf(score) === 'idle' && 'Get rented: the fees that renters pay earn in a separate pool.',
    cycles < policy.window_cycles && 'Wait: the mean covers few cycles so far.',
  ];
  const found = lines.filter((line) => line !== false);
  return found.length === 0 ? ['Only more or better GPUs.'] : found;
}

/** Gain from the best value of a factor, as ` (x 1.50)`; empty if the points are 0 now. */
function gainText(factors: Score['factors'], factor: Factor, best: number): string {
  const now = pointsOf(factors);
  if (now === 0n) return '';
  const then = pointsOf({ ...factors, [factor]: best });
  return ` (x ${(Number(then) / Number(now)).toFixed(2)})`;
}

/** `problems` are reasons why the lines are incomplete or not trustworthy. */
export type Explanation = { lines: string[]; problems: string[] };

/** Explains the last computed weights. `keys` are the trusted signers. */
export async function explanationOf(
  store: EvidenceStore,
  executorId: string,
  keys: readonly TrustedHotkey[],
): Promise<Explanation> {
  const score = await explainScore(store, executorId, keys);
  const check = await explainLastCheck(store, executorId, keys);
  return {
    lines: [...score.lines, ...check.lines],
    problems: [...score.problems, ...check.problems],
  };
}

async function explainScore(
  store: EvidenceStore,
  executorId: string,
  keys: readonly TrustedHotkey[],
): Promise<Explanation> {
  const epoch = await lastEpoch(store);
  if (epoch === undefined) return { lines: [NO_WEIGHTS], problems: [] };
  const policy = readPolicy(epoch);
  const { head, kept, weigher } = await weighStoredEpoch(store, epoch, policy);
  const known = { meanPoints: weigher.meanPoints(), cycles: kept.length };
  const lines = explainExecutor(executorId, { head, ...known, policy, posted: readPayload(epoch) });
  const isWhole = weigher.result(head)?.inputHash === epoch.input_hash;
  const none = `executor ${executorId} was measured in no cycle of epoch ${epoch.number}, the last one`;
  const holdsLease =
    isTrustedAt(keys, head.validator, epoch.computed_ms) &&
    signatureProblem(epoch, head.validator) === null;
  return {
    lines: lines === null ? [none] : [titleOf(epoch), ...lines],
    problems: [...(isWhole ? [] : [ALTERED]), ...(holdsLease ? [] : [NOT_OURS])],
  };
}

const NOT_OURS =
  'The weights are not signed with a trusted key: run replay; for the store of another validator pass --hotkey';

export const NO_WEIGHTS =
  'no weights were computed yet: the first are computed after a cycle of checks has ended, if the file of VALIDATOR_METAGRAPH lists the burn_hotkey of the weight policy, or uid 0 if it is null (doctor checks this)';

const ALTERED = 'The input of the weights was altered or is incomplete: run replay';

function titleOf({
  number,
  computed_ms: computedMs,
  state,
  policy_hash: policy,
}: EpochRow): string {
  return `Epoch ${number} of ${naiveUtc(computedMs)}Z, ${state}; policy ${policy}`;
}

async function explainLastCheck(
  store: EvidenceStore,
  executorId: string,
  keys: readonly TrustedHotkey[],
): Promise<Explanation> {
  const last = await lastEvidence(store, executorId);
  const head = await trustedHead(store, executorId, keys);
  if (head !== null && head.last_seq > (last?.seq ?? 0)) {
    return { lines: [], problems: [`Its last check (evidence ${head.last_id}) is missing`] };
  }
  const evidence = last === undefined ? undefined : await findEvidence(store, last.id);
  if (evidence === undefined) {
    const nothing = `no check of ${executorId} is on record: pass the id of an executor`;
    return { lines: [], problems: [nothing] };
  }
  if (evidence.document === null && dropProblem(evidence, head, keys) === null) {
    const at = `${naiveUtc(evidence.finished_ms)}Z`;
    const text = `Its last check, ${at}: ok (evidence ${evidence.id}); the document was dropped because of its age`;
    return { lines: ['', text], problems: [] };
  }
  const read = readDocument(evidence, keys);
  if ('document' in read)
    return { lines: ['', ...checkText(evidence.id, read.document)], problems: [] };
  const problem = `Its last check (evidence ${evidence.id}) is not trustworthy: ${read.problem}`;
  return { lines: [], problems: [problem] };
}

function checkText(
  id: string,
  { verdict, finished_at: finishedMs, checks }: EvidenceDocument,
): string[] {
  const failed = checks.filter((check) => !check.passed);
  const [counted, noted] = [true, false].map((isCounted) =>
    failed.filter(({ mode }) => (mode === 'enforce') === isCounted),
  );
  return [
    `Its last check, ${naiveUtc(finishedMs)}Z: ${verdict} (evidence ${id}); it counts for weights from its cycle on`,
    ...checkLines('Failed checks that count:', counted ?? []),
    ...checkLines('Failed checks that are only recorded:', noted ?? []),
  ];
}

function checkLines(title: string, checks: EvidenceDocument['checks']): string[] {
  const lines = checks.flatMap((check) => [
    `  ${check.check_id} ${check.reason_code}: ${check.message}`,
    `    measured ${check.measured}; required ${check.required}`,
    `    ${check.remediation}`,
  ]);
  return lines.length === 0 ? [] : [title, ...lines];
}
