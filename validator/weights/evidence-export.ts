/** The evidence of one executor or of all, checked on its way out: one JSON line for each document (validator reference 7). */
import { findCheckPolicy } from '../checks/check-policy.store.ts';
import { type ChainProblem, createChainCheck, type Link } from '../evidence/chain.ts';
import { mustExist, trustedHead } from '../evidence/chain-head.ts';
import { readDocument, reproducesVerdict } from '../evidence/document.ts';
import { evidenceAfter, executorsWithEvidence, findEvidence } from '../evidence/evidence.store.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EvidenceHeadRow, EvidenceRow, EvidenceStore } from '../store/tables.ts';
import { entriesOf, executorsInCycles } from './cycle.store.ts';
import type { CycleEntry } from './cycle-set.ts';

const PAGE = 100;

/** `executorId` null: of all. `keys`: whose signatures count. */
export type ExportOptions = { executorId: string | null; keys: readonly TrustedHotkey[] };

export type EvidenceProblem = ChainProblem & { executorId: string };

/**
 * Hands every document to `write` as `{"id","signature","document"}`, the document being the very text that is
 * hashed and signed. Resolves with what is wrong: a hash, a signature or whose it is, a document that is missing by
 * its chain, the chain's head or the cycles that name it, a verdict that its inputs do not give.
 */
export async function exportEvidence(
  store: EvidenceStore,
  { executorId, keys }: ExportOptions,
  write: (line: string) => void,
): Promise<EvidenceProblem[]> {
  const known = await executorsOf(store);
  if (executorId !== null && !known.includes(executorId)) {
    return [{ executorId, seq: null, problem: UNKNOWN }];
  }
  const executors = executorId === null ? known : [executorId];
  const problems: EvidenceProblem[] = [];
  for (const executor of executors) {
    const found = await exportChain({ store, executorId: executor, keys }, write);
    problems.push(...found.map((problem) => ({ executorId: executor, ...problem })));
  }
  return problems;
}

const UNKNOWN =
  'there is none, and no cycle names it: is it the id of an executor, as the portal shows it?';

/** Of those whose evidence is gone, too: by the cycles that name it. */
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
  let page: EvidenceRow[];
  let seq = 0;
  do {
    page = await evidenceAfter(store, executorId, seq, PAGE);
    for (const row of page) {
      const { problem, previous } = await lookAt(store, row, keys);
      if (problem !== null) problems.push({ seq: row.seq, problem });
      check.add({ id: row.id, seq: row.seq, previous });
      const { id, signature, document } = row;
      write(`${JSON.stringify({ id, signature, document })}\n`);
      ids.add(id);
      seq = row.seq;
    }
  } while (page.length === PAGE);
  const head = await trustedHead(store, executorId, keys);
  const gone = await missingDocuments(chain, head, ids);
  return [...problems, ...check.end(head), ...gone];
}

type Look = { problem: string | null; previous: Link['previous'] };

async function lookAt(
  store: EvidenceStore,
  row: EvidenceRow,
  keys: readonly TrustedHotkey[],
): Promise<Look> {
  const read = readDocument(row, keys);
  if ('problem' in read) return { problem: read.problem, previous: undefined };
  const { document } = read;
  const { previous } = document;
  if (document.executor_id !== row.executor_id || document.seq !== row.seq) {
    return { problem: 'it belongs to another place', previous };
  }
  // What weights are computed from has to be what was signed.
  if (row.verdict !== document.verdict || row.finished_ms !== document.finished_at) {
    return { problem: 'its row tells another verdict or time than the document', previous };
  }
  const checks = await findCheckPolicy(store, document.check_policy_hash);
  const problem = reproducesVerdict(document, checks) ? null : 'its inputs give another verdict';
  return { problem, previous };
}

/** What the cycles, from which weights are computed, know of the executor beyond `ids`. */
async function missingDocuments(
  { store, executorId }: Chain,
  head: EvidenceHeadRow | null,
  ids: ReadonlySet<string>,
): Promise<ChainProblem[]> {
  const gone: string[] = [];
  for (const { cycle, entry_json, start_ms } of await entriesOf(store, executorId)) {
    // Written by us from a CycleEntry: its form is known.
    const { evidence_id: id } = JSON.parse(entry_json) as CycleEntry;
    if (ids.has(id) || !mustExist(head, start_ms)) continue;
    if ((await findEvidence(store, id)) === undefined) gone.push(`${id} of cycle ${cycle}`);
  }
  const [first] = gone;
  if (first === undefined) return [];
  const problem = `of the documents that cycles name ${gone.length} are missing, the first ${first}`;
  return [{ seq: null, problem }];
}
