/** Appends every check run to its executor's chain, drops old documents of passed checks, and prunes old rows. */
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { checkPolicyRow, saveCheckPolicy } from '../checks/check-policy.store.ts';
import type { CheckPolicy } from '../checks/check-policy.ts';
import { isTrustedAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type {
  CheckPoliciesTable,
  EvidenceHeadRow,
  EvidenceStore,
  StoreDb,
} from '../store/tables.ts';
import { type HeadClaim, isTrustedHead, signHead } from './chain-head.ts';
import { createDictionaries } from './dictionaries.ts';
import { type CheckRun, documentOf, signDocument } from './document.ts';
import {
  deletePassedDocuments,
  deletePrunedHeads,
  executorsWithEvidence,
  findHead,
  insertEvidence,
  lastEvidence,
  oldestPassedDocuments,
  type Pruned,
  pruneEvidence,
  type Retention,
  replaceHead,
} from './evidence.store.ts';

/** Maximum number of rows per executor, whatever their age: 17 months of checks in intervals of 15 minutes. */
const MAX_ROWS = 50_000;
/** Maximum number of documents dropped in one transaction. */
const DROP_BATCH = 500;
/** Maximum number of cached heads that this process has verified or signed. */
const MAX_VERIFIED_HEADS = 20_000;

export type EvidenceService = ReturnType<typeof createEvidence>;

export type EvidenceOptions = {
  store: EvidenceStore;
  signer: Signer;
  /** Keys whose chains are continued. */
  trusted: readonly TrustedHotkey[];
  /** Weight policy, which documents name by version and hash. */
  policy: { readonly version: number };
  clock: Pick<Clock, 'monotonicMs' | 'now'>;
  log: Pick<Log, 'error'>;
};

/** Stored head, and the same head if its signature is trusted. */
type FoundHead = { row: EvidenceHeadRow | undefined; ours: EvidenceHeadRow | null };

export function createEvidence(options: EvidenceOptions) {
  const { store, signer, trusted, policy, clock, log } = options;
  const policyHash = sha256Hex(canonicalJson(policy));
  const verifiedHeads = new Map<string, string>();
  /** Rows of check policies, which no run changes, and the hashes of those that this process has stored. */
  const policyRows = new WeakMap<CheckPolicy, CheckPoliciesTable>();
  const storedPolicies = new Set<string>();
  const dictionaries = createDictionaries();

  function policyRowOf(checks: CheckPolicy): CheckPoliciesTable {
    const row = policyRows.get(checks) ?? checkPolicyRow(checks);
    policyRows.set(checks, row);
    return row;
  }

  const textOf = (row: EvidenceHeadRow): string => sha256Hex(canonicalJson(row));

  function rememberVerified(row: EvidenceHeadRow): void {
    if (verifiedHeads.size >= MAX_VERIFIED_HEADS) verifiedHeads.clear();
    verifiedHeads.set(row.executor_id, textOf(row));
  }

  function isVerified(row: EvidenceHeadRow): boolean {
    if (verifiedHeads.get(row.executor_id) === textOf(row)) return true;
    if (!isTrustedHead(row, trusted)) return false;
    rememberVerified(row);
    return true;
  }

  async function headOf(tx: StoreDb, executorId: string): Promise<FoundHead> {
    const row = await findHead(tx, executorId);
    return { row, ours: row !== undefined && isVerified(row) ? row : null };
  }

  async function advance(
    tx: StoreDb,
    row: EvidenceHeadRow | undefined,
    claim: HeadClaim,
  ): Promise<void> {
    const head = await signHead(claim, signer, clock.now());
    await replaceHead(tx, head, row);
    // Verifying the own signature at the next document would take longer than signing.
    if (isTrustedAt(trusted, head.validator, head.signed_ms)) rememberVerified(head);
  }

  /**
   * Returns the last document of a chain. A head that is missing, not trusted or behind its rows is created again,
   * which verification detects.
   */
  async function endOf(tx: StoreDb, executorId: string) {
    const { row, ours } = await headOf(tx, executorId);
    const top = await lastEvidence(tx, executorId);
    const head = ours !== null && (top?.seq ?? 0) <= ours.last_seq ? ours : null;
    if (head !== null) return { row, head, last: { seq: head.last_seq, id: head.last_id } };
    if (row !== undefined || top !== undefined) {
      log.error({ executor: executorId }, 'head of evidence chain is missing or not trusted');
    }
    return { row, head, last: top ?? null };
  }

  /**
   * Drops a batch of an executor's documents. Resolves with true if more may follow. The head states the drop in the
   * same transaction, so that a process that is killed leaves a chain that can be verified.
   */
  async function dropOldest(
    executorId: string,
    { beforeMs, batch }: { beforeMs: number; batch: number },
  ): Promise<boolean> {
    return store.transaction().execute(async (tx) => {
      const oldest = await oldestPassedDocuments(tx, executorId, batch);
      const young = oldest.findIndex(({ finished_ms }) => finished_ms >= beforeMs);
      const end = (young === -1 ? oldest : oldest.slice(0, young)).at(-1);
      if (end === undefined) return false;
      const { row, ours } = await headOf(tx, executorId);
      // A head that is not trusted is left for the operator to examine.
      if (ours === null || end.seq > ours.last_seq) return false;
      const { validator: _, signed_ms: __, signature: ___, ...claim } = ours;
      const dropped_seq = Math.max(ours.dropped_seq ?? 0, end.seq);
      await advance(tx, row, { ...claim, dropped_seq, dropped_ms: clock.now() });
      await deletePassedDocuments(tx, executorId, end.seq);
      return young === -1 && oldest.length === batch;
    });
  }

  async function pruneChain(
    tx: StoreDb,
    executorId: string,
    limits: Omit<Retention, 'keep'>,
  ): Promise<void> {
    const { row, ours } = await headOf(tx, executorId);
    const pruned = await pruneEvidence(tx, executorId, { ...limits, keep: MAX_ROWS });
    // A head that is not trusted or behind its rows is left for the operator to examine.
    if (pruned !== null && ours !== null && pruned.seq <= ours.last_seq)
      await advance(tx, row, claimAfterPruning(ours, pruned));
  }

  return {
    /** Stores a document in one transaction with what `first` writes before it. Resolves with its id. */
    async record(run: CheckRun, first?: (tx: StoreDb) => Promise<void>): Promise<string> {
      const { id: executorId } = run.facts.executor;
      const policyRow = policyRowOf(run.facts.policy.checks);
      const id = await store.transaction().execute(async (tx) => {
        await first?.(tx);
        if (!storedPolicies.has(policyRow.hash)) await saveCheckPolicy(tx, policyRow);
        const { row: headRow, head, last } = await endOf(tx, executorId);
        const place = { seq: (last?.seq ?? 0) + 1, previous: last?.id ?? null };
        const document = documentOf(run, {
          ...place,
          validator: signer.hotkey,
          policyVersion: policy.version,
          policyHash,
          checkPolicyHash: policyRow.hash,
        });
        const signed = await signDocument(document, signer);
        const row = {
          ...signed,
          executor_id: executorId,
          seq: document.seq,
          previous: document.previous,
          finished_ms: run.finishedMs,
          verdict: document.verdict,
        };
        const likeness = { program: document.program, check_policy_hash: policyRow.hash };
        await insertEvidence(tx, row, await dictionaries.of(tx, likeness, row));
        await advance(tx, headRow, {
          executor_id: executorId,
          first_seq: head?.first_seq ?? place.seq,
          first_previous: head === null ? place.previous : head.first_previous,
          pruned_ms: head?.pruned_ms ?? null,
          dropped_seq: head?.dropped_seq ?? null,
          dropped_ms: head?.dropped_ms ?? null,
          last_seq: document.seq,
          last_id: signed.id,
        });
        return signed.id;
      });
      storedPolicies.add(policyRow.hash);
      return id;
    },

    /**
     * Drops the documents of passed checks that finished before `beforeMs`. Their rows stay, with hash, verdict and
     * signature, and so do the documents of all other checks. Each transaction drops at most `batch` documents.
     */
    async dropPassed(beforeMs: number, batch: number = DROP_BATCH): Promise<void> {
      const breath = createEventLoopYield(clock);
      for (const executorId of await executorsWithEvidence(store)) {
        while (await dropOldest(executorId, { beforeMs, batch })) await breath();
        await breath();
      }
    },

    /**
     * Deletes rows with their documents if they finished before `beforeMs`, and heads of empty chains whose last
     * document was pruned before `endsBeforeMs`. Rows of older versions have their own limit, `unheadedBeforeMs`.
     */
    async prune(
      beforeMs: number,
      endsBeforeMs: number,
      unheadedBeforeMs: number = beforeMs,
    ): Promise<void> {
      const breath = createEventLoopYield(clock);
      const limits = { beforeMs, unheadedBeforeMs };
      for (const executorId of await executorsWithEvidence(store)) {
        await store.transaction().execute((tx) => pruneChain(tx, executorId, limits));
        await breath();
      }
      await deletePrunedHeads(store, endsBeforeMs);
    },
  };
}

/** Moves the beginning of the chain behind the pruned documents, unless the chain already begins later. */
function claimAfterPruning(head: EvidenceHeadRow, pruned: Pruned): HeadClaim {
  const { executor_id, last_seq, last_id, dropped_seq, dropped_ms } = head;
  const pruned_ms = Math.max(head.pruned_ms ?? 0, pruned.finishedMs);
  const begins =
    pruned.seq < head.first_seq
      ? { first_seq: head.first_seq, first_previous: head.first_previous }
      : { first_seq: pruned.seq + 1, first_previous: pruned.id };
  return { executor_id, ...begins, pruned_ms, dropped_seq, dropped_ms, last_seq, last_id };
}
