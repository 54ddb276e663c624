/** Writes every check run into the executor's chain, and takes away what is too old (validator reference 7). */
import { type Clock, createBreath } from '#shared/clock.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { keepCheckPolicy } from '../checks/check-policy.store.ts';
import type { Ledger, LedgerDb } from '../ledger/ledger.tables.ts';
import { policyHashOf, type WeightPolicy } from '../weights/weight-policy.ts';
import { type CheckRun, documentOf, signDocument } from './evidence.document.ts';
import {
  executorsWithEvidence,
  forgetEvidence,
  insertEvidence,
  lastEvidence,
} from './evidence.store.ts';

/** Of one executor, whatever its age: one that fails is looked at again and again. */
const MAX_DOCUMENTS = 3_000;

export type EvidenceService = ReturnType<typeof createEvidence>;

export type EvidenceOptions = {
  ledger: Ledger;
  signer: Signer;
  policy: WeightPolicy;
  clock: Pick<Clock, 'monotonicMs'>;
};

export function createEvidence({ ledger, signer, policy, clock }: EvidenceOptions) {
  const policyHash = policyHashOf(policy);
  return {
    /** Resolves with the document's id once it is on disk, and with it what `first` wrote before. */
    async record(run: CheckRun, first?: (tx: LedgerDb) => Promise<void>): Promise<string> {
      const { id: executorId } = run.facts.executor;
      return ledger.transaction().execute(async (tx) => {
        await first?.(tx);
        const checkPolicyHash = await keepCheckPolicy(tx, run.facts.policy.checks);
        const last = await lastEvidence(tx, executorId);
        const document = documentOf(run, {
          seq: (last?.seq ?? 0) + 1,
          previous: last?.id ?? null,
          validator: signer.hotkey,
          policyVersion: policy.version,
          policyHash,
          checkPolicyHash,
        });
        const signed = signDocument(document, signer);
        await insertEvidence(tx, {
          ...signed,
          executor_id: executorId,
          seq: document.seq,
          finished_ms: run.finishedMs,
          verdict: document.verdict,
        });
        return signed.id;
      });
    },

    /** Keeps the newest of what was finished at `beforeMs` or later. */
    async forget(beforeMs: number): Promise<void> {
      const breath = createBreath(clock);
      for (const executorId of await executorsWithEvidence(ledger)) {
        await forgetEvidence(ledger, executorId, { beforeMs, keep: MAX_DOCUMENTS });
        await breath();
      }
    },
  };
}
