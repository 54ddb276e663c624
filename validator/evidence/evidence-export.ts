/** The evidence of one executor or of all, checked on its way out: one JSON line for each document (validator reference 7). */
import { findCheckPolicy } from '../checks/check-policy.store.ts';
import type { Ledger } from '../ledger/ledger.tables.ts';
import { isJudgedRight, readDocument } from './evidence.document.ts';
import { evidenceAfter, executorsWithEvidence } from './evidence.store.ts';

const PAGE = 100;

/** What is wrong with a chain at one document. */
export type EvidenceProblem = { executorId: string; seq: number; problem: string };

/**
 * Hands every document to `write` as `{"id","signature","document"}`, the document being the very text that is
 * hashed and signed. Resolves with what is wrong: a hash, a signature, a gap in a chain, a verdict that its inputs
 * do not give. The first document of a chain may name one that was too old to be kept.
 */
export async function exportEvidence(
  ledger: Ledger,
  executorId: string | null,
  write: (line: string) => void,
): Promise<EvidenceProblem[]> {
  const executors = executorId === null ? await executorsWithEvidence(ledger) : [executorId];
  const problems: EvidenceProblem[] = [];
  for (const executor of executors) problems.push(...(await exportChain(ledger, executor, write)));
  return problems;
}

async function exportChain(
  ledger: Ledger,
  executorId: string,
  write: (line: string) => void,
): Promise<EvidenceProblem[]> {
  const problems: EvidenceProblem[] = [];
  let before: { id: string; seq: number } | null = null;
  for (;;) {
    const page = await evidenceAfter(ledger, executorId, before?.seq ?? 0, PAGE);
    for (const row of page) {
      const problem = await problemOf(ledger, row, before);
      if (problem !== null) problems.push({ executorId, seq: row.seq, problem });
      const { id, signature, document } = row;
      write(`${JSON.stringify({ id, signature, document })}\n`);
      before = row;
    }
    if (page.length < PAGE) return problems;
  }
}

type Row = Awaited<ReturnType<typeof evidenceAfter>>[number];

async function problemOf(
  ledger: Ledger,
  row: Row,
  before: { id: string; seq: number } | null,
): Promise<string | null> {
  const read = readDocument(row);
  if ('problem' in read) return read.problem;
  const { document } = read;
  if (document.executor_id !== row.executor_id || document.seq !== row.seq) {
    return 'it belongs to another place';
  }
  // What weights are computed from has to be what was signed.
  if (row.verdict !== document.verdict || row.finished_ms !== document.finished_at) {
    return 'its row tells another verdict or time than the document';
  }
  const follows =
    before === null || (row.seq === before.seq + 1 && document.previous === before.id);
  if (!follows) return 'it does not follow the one before';
  const checks = await findCheckPolicy(ledger, document.check_policy_hash);
  return isJudgedRight(document, checks) ? null : 'its inputs give another verdict';
}
