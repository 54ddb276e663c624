/** Exports and verifies the evidence of one executor or of all, one JSON line per document. */
import { isDeepStrictEqual } from 'node:util';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { findCheckPolicy } from '../checks/check-policy.store.ts';
import { type ChainProblem, createChainCheck, type Link } from '../evidence/chain.ts';
import { mustExist, trustedHead } from '../evidence/chain-head.ts';
import { headerOf, readDocument, reproducesVerdict, signedTextOf } from '../evidence/document.ts';
import {
  evidenceAfter,
  executorsWithEvidence,
  findEvidence,
  lastFactsMs,
} from '../evidence/evidence.store.ts';
import { dropProblem, headerIn } from '../evidence/header.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EvidenceHeadRow, EvidenceRow, EvidenceStore } from '../store/tables.ts';
import { entriesOf, executorsInCycles } from './cycle.store.ts';
import type { CycleEntry } from './cycle-set.ts';

const PAGE = 100;

/** `executorId` null exports all executors; `keys` are the trusted signers. */
export type ExportOptions = { executorId: string | null; keys: readonly TrustedHotkey[] };

export type EvidenceProblem = ChainProblem & { executorId: string };

/**
 * Writes a line for each check run: `{"id","signature","signed_as","header","document"}`. The signature covers `signed_as`
 * and `header`, or `document` if `header` is null, as in documents of older versions. `document` is the text that is
 * hashed; after a drop it is null, and `dropped_at` is the time of the last drop. Resolves with the problems found: a
 * wrong hash, signature or signer; a verdict that the inputs do not reproduce; or a missing document, which the chain,
 * its head or a cycle names, and whose drop the head does not state.
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
      const { problem, previous, droppedMs } = await verifyRow(chain, row);
      if (problem !== null) problems.push({ seq: row.seq, problem });
      check.add({ id: row.id, seq: row.seq, previous });
      write(lineOf(row, droppedMs ?? null));
      ids.add(row.id);
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

/** `droppedMs` is the time of the drop if the document was dropped. */
type VerifiedRow = {
  problem: string | null;
  previous: Link['previous'];
  droppedMs?: number | null;
};

async function verifyRow({ store, keys }: Chain, row: EvidenceRow): Promise<VerifiedRow> {
  if (row.document === null) {
    // The head now: a running validator may have dropped the document meanwhile.
    const head = await trustedHead(store, row.executor_id, keys);
    const problem = dropProblem(row, head, keys);
    const previous = row.validator === null ? undefined : row.previous;
    return { problem, previous, droppedMs: problem === null ? (head?.dropped_ms ?? null) : null };
  }
  const read = readDocument(row, keys);
  if ('problem' in read) return { problem: read.problem, previous: undefined };
  const { document } = read;
  const { previous } = document;
  if (document.executor_id !== row.executor_id || document.seq !== row.seq) {
    return { problem: 'it belongs to another executor or position', previous };
  }
  // Weights are computed from these columns, and they are the header of the row once its document is dropped.
  if (row.verdict !== document.verdict || row.finished_ms !== document.finished_at) {
    return { problem: 'its row has another verdict or time than the document', previous };
  }
  if (row.validator !== null && !isDeepStrictEqual(headerIn(row), headerOf(document, row.id))) {
    return { problem: 'its row has another signer or predecessor than the document', previous };
  }
  const checks = await findCheckPolicy(store, document.check_policy_hash);
  const problem = reproducesVerdict(document, checks)
    ? null
    : 'its inputs reproduce another verdict';
  return { problem, previous };
}

function lineOf(row: EvidenceRow, droppedMs: number | null): string {
  const { id, signature, document } = row;
  const dropped = droppedMs === null ? {} : { dropped_at: naiveUtc(droppedMs) };
  return `${JSON.stringify({ id, signature, ...signedTextOf(row), document, ...dropped })}\n`;
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
