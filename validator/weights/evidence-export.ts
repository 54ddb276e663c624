/** Exports and verifies the evidence of one executor or of all, one JSON line per document. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import { findCheckPolicy } from '../checks/check-policy.store.ts';
import { type ChainProblem, createChainCheck, type Link } from '../evidence/chain.ts';
import { mustExist, trustedHead } from '../evidence/chain-head.ts';
import { readDocument, reproducesVerdict } from '../evidence/document.ts';
import {
  evidenceAfter,
  executorsWithEvidence,
  findEvidence,
  lastFactsMs,
} from '../evidence/evidence.store.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EvidenceHeadRow, EvidenceRow, EvidenceStore } from '../store/tables.ts';
import { entriesOf, executorsInCycles } from './cycle.store.ts';
import type { CycleEntry } from './cycle-set.ts';

const PAGE = 100;

/** `executorId` null exports all executors; `keys` are the trusted signers. */
export type ExportOptions = { executorId: string | null; keys: readonly TrustedHotkey[] };

export type EvidenceProblem = ChainProblem & { executorId: string };

/**
 * Writes every document as `{"id","signature","document"}`, where `document` is the text that is hashed and signed.
 * Resolves with the problems found: a wrong hash, signature or signer; a verdict that the inputs do not reproduce; or a
 * missing document, which the chain, its head or a cycle names.
 */
export async function exportEvidence(
  store: EvidenceStore,
  { executorId, keys }: ExportOptions,
  write: (line: string) => void,
): Promise<EvidenceProblem[]> {
  const known = await executorsOf(store);
  if (executorId !== null && !known.includes(executorId)) {
    return [{ executorId, seq: null, problem: UNKNOWN_EXECUTOR }];
  }
  const executors = executorId === null ? known : [executorId];
  const problems: EvidenceProblem[] = [];
  for (const executor of executors) {
    const found = await exportChain({ store, executorId: executor, keys }, write);
    problems.push(...found.map((problem) => ({ executorId: executor, ...problem })));
  }
  return problems;
}

const UNKNOWN_EXECUTOR =
  'neither evidence nor a cycle names this executor: pass an id that the portal shows';

/** Executors with evidence, and executors that a cycle names but whose evidence was deleted. */
async function executorsOf(store: EvidenceStore): Promise<string[]> {
  const known = [...(await executorsWithEvidence(store)), ...(await executorsInCycles(store))];
  return [...new Set(known)];
}

type Chain = { store: EvidenceStore; executorId: string; keys: readonly TrustedHotkey[] };

async function exportChain(chain: Chain, write: (line: string) => void): Promise<ChainProblem[]> {
  const { store, executorId, keys } = chain;
  const check = createChainCheck(await trustedHead(store, executorId, keys));
  const problems: ChainProblem[] = [];
  const ids = new Set<string>();
  let lastMs = 0;
  let page: EvidenceRow[];
  let seq = 0;
  do {
    page = await evidenceAfter(store, executorId, seq, PAGE);
    for (const row of page) {
      const { problem, previous } = await verifyRow(store, row, keys);
      if (problem !== null) problems.push({ seq: row.seq, problem });
      check.add({ id: row.id, seq: row.seq, previous });
      const { id, signature, document } = row;
      write(`${JSON.stringify({ id, signature, document })}\n`);
      ids.add(id);
      seq = row.seq;
      lastMs = row.finished_ms;
    }
  } while (page.length === PAGE);
  const head = await trustedHead(store, executorId, keys);
  const gone = await missingDocuments(chain, head, ids);
  const unreported = await missingReport(chain, head, lastMs);
  return [...problems, ...check.end(head), ...gone, ...unreported];
}

/**
 * A verdict that was posted, or waits to be posted, is as new as its document: older documents alone are a truncated
 * chain.
 */
async function missingReport(
  { store, executorId }: Chain,
  head: EvidenceHeadRow | null,
  lastMs: number,
): Promise<ChainProblem[]> {
  const postedMs = await lastFactsMs(store, executorId);
  if (postedMs === null || postedMs <= Math.max(lastMs, head?.pruned_ms ?? 0)) return [];
  const problem = `a verdict of ${naiveUtc(postedMs)}Z was posted, but no document is so new: the newest are missing`;
  return [{ seq: null, problem }];
}

type VerifiedRow = { problem: string | null; previous: Link['previous'] };

async function verifyRow(
  store: EvidenceStore,
  row: EvidenceRow,
  keys: readonly TrustedHotkey[],
): Promise<VerifiedRow> {
  const read = readDocument(row, keys);
  if ('problem' in read) return { problem: read.problem, previous: undefined };
  const { document } = read;
  const { previous } = document;
  if (document.executor_id !== row.executor_id || document.seq !== row.seq) {
    return { problem: 'it belongs to another executor or position', previous };
  }
  // Weights are computed from these columns, so the columns must match the signed document.
  if (row.verdict !== document.verdict || row.finished_ms !== document.finished_at) {
    return { problem: 'its row has another verdict or time than the document', previous };
  }
  const checks = await findCheckPolicy(store, document.check_policy_hash);
  const problem = reproducesVerdict(document, checks)
    ? null
    : 'its inputs reproduce another verdict';
  return { problem, previous };
}

/** Documents that a cycle names but that are neither in `ids` nor stored. */
async function missingDocuments(
  { store, executorId }: Chain,
  head: EvidenceHeadRow | null,
  ids: ReadonlySet<string>,
): Promise<ChainProblem[]> {
  const gone: string[] = [];
  for (const { cycle, entry_json, start_ms } of await entriesOf(store, executorId)) {
    // The weights module wrote this text from a CycleEntry.
    const { evidence_id: id } = JSON.parse(entry_json) as CycleEntry;
    if (ids.has(id) || !mustExist(head, start_ms)) continue;
    if ((await findEvidence(store, id)) === undefined) gone.push(`${id} of cycle ${cycle}`);
  }
  const [first] = gone;
  if (first === undefined) return [];
  const problem = `${gone.length} documents that cycles name are missing, the first ${first}`;
  return [{ seq: null, problem }];
}
