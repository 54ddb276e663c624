/** Composes proofs of work: rounds, the thread that verifies them, and the durations with which they are compared. */
import { createProofBaselines } from '../../checks/proof-baseline.service.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import { createProofRounds, type ProofRoundOptions } from './proof-round.ts';
import type { Verifier } from './verifier.ts';

export function createProofs({
  store,
  ...options
}: Omit<ProofRoundOptions, 'baselines'> & { store: EvidenceStore; verifier: Verifier }) {
  const baselines = createProofBaselines({ store, clock: options.clock });
  return {
    baselines,
    rounds: createProofRounds({ ...options, baselines }),
    close: options.verifier.close,
  };
}
