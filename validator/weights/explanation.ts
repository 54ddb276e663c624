/** What the ledger has to say of an executor's score and its last check, for people. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import { type EvidenceDocument, readDocument } from '../evidence/evidence.document.ts';
import { findEvidence, lastEvidence } from '../evidence/evidence.store.ts';
import { headThatCounts } from '../evidence/evidence-kept.ts';
import { countsAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EpochRow, Ledger } from '../store/ledger.tables.ts';
import { lastEpoch } from './epoch.store.ts';
import { readPolicy, readPosted } from './epoch-record.ts';
import { signatureProblem } from './epoch-signature.ts';
import { explainExecutor } from './explain.ts';
import { weighStored } from './replay.ts';

/** `problems`: why it is not to be believed, or not all there is. */
export type Explanation = { lines: string[]; problems: string[] };

/** By the last weights that were computed. `keys`: whose signatures count. */
export async function explanationOf(
  ledger: Ledger,
  executorId: string,
  keys: readonly TrustedHotkey[],
): Promise<Explanation> {
  const ofScore = await scoreOf(ledger, executorId, keys);
  const ofCheck = await lastCheckOf(ledger, executorId, keys);
  return {
    lines: [...ofScore.lines, ...ofCheck.lines],
    problems: [...ofScore.problems, ...ofCheck.problems],
  };
}

async function scoreOf(
  ledger: Ledger,
  executorId: string,
  keys: readonly TrustedHotkey[],
): Promise<Explanation> {
  const epoch = await lastEpoch(ledger);
  if (epoch === undefined) return { lines: [NO_WEIGHTS], problems: [] };
  const policy = readPolicy(epoch);
  const { head, kept, weigher } = await weighStored(ledger, epoch, policy);
  const known = { standings: weigher.standings(), cycles: kept.length };
  const lines = explainExecutor(executorId, { head, ...known, policy, posted: readPosted(epoch) });
  const isWhole = weigher.result(head)?.inputHash === epoch.input_hash;
  const none = `executor ${executorId} was measured in no cycle of epoch ${epoch.number}, the last one`;
  const isOurs =
    countsAt(keys, head.validator, epoch.computed_ms) &&
    signatureProblem(epoch, head.validator) === null;
  return {
    lines: lines === null ? [none] : [titleOf(epoch), ...lines],
    problems: [...(isWhole ? [] : [ALTERED]), ...(isOurs ? [] : [NOT_OURS])],
  };
}

const NOT_OURS =
  'The weights are not signed with a key that counts: see replay, and --hotkey for the ledger of somebody else';

/** Of a ledger without epochs. */
export const NO_WEIGHTS =
  'no weights were computed yet: the first come once a cycle of checks has ended, where VALIDATOR_METAGRAPH says who is registered';

const ALTERED = 'What the weights were computed from is not all there, or was altered: see replay';

function titleOf({
  number,
  computed_ms: computedMs,
  state,
  policy_hash: policy,
}: EpochRow): string {
  return `Epoch ${number} of ${naiveUtc(computedMs)}Z, ${state}; policy ${policy}`;
}

async function lastCheckOf(
  ledger: Ledger,
  executorId: string,
  keys: readonly TrustedHotkey[],
): Promise<Explanation> {
  const last = await lastEvidence(ledger, executorId);
  const head = await headThatCounts(ledger, executorId, keys);
  if (head !== null && head.last_seq > (last?.seq ?? 0)) {
    return { lines: [], problems: [`Its last check (evidence ${head.last_id}) is missing`] };
  }
  const evidence = last === undefined ? undefined : await findEvidence(ledger, last.id);
  if (evidence === undefined) {
    const nothing = `no check of ${executorId} is on record: is it the id of an executor?`;
    return { lines: [], problems: [nothing] };
  }
  const read = readDocument(evidence, keys);
  if ('document' in read)
    return { lines: ['', ...checkText(evidence.id, read.document)], problems: [] };
  const problem = `Its last check (evidence ${evidence.id}) is not to be believed: ${read.problem}`;
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
    `Its last check, ${naiveUtc(finishedMs)}Z: ${verdict} (evidence ${id}); weights have it from its cycle on`,
    ...checkLines('What failed, and counts:', counted ?? []),
    ...checkLines('What failed, and is on record only:', noted ?? []),
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
