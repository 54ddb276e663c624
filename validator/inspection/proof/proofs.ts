/** Composes proofs of work: rounds, the thread that verifies them, and the durations with which they are compared. */
import { createProofBaselines } from '../../checks/proof-baseline.service.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import { createProofRounds, type ProofRoundOptions } from './proof-round.ts';
import { createVerifier } from './verifier.ts';

export function createProofs({
  store,
  ...options
}: Omit<ProofRoundOptions, 'baselines' | 'verifier'> & { store: EvidenceStore }) {
  const baselines = createProofBaselines({ store, clock: options.clock });
  const verifier = createVerifier();
  return {
    baselines,
    rounds: createProofRounds({ ...options, baselines, verifier }),
    close: verifier.close,
  };
}
