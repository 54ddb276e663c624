/** The validator's way from evidence to posted weights, put together. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { EvidenceService } from '../evidence/evidence.service.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { Ledger } from '../store/ledger.tables.ts';
import type { Outbox } from '../store/outbox/outbox.service.ts';
import { createCycles } from './cycle.service.ts';
import { createEpochs } from './epoch.service.ts';
import type { Metagraph } from './metagraph.ts';
import type { WeightPolicy } from './weight-policy.ts';
import { createWeightsJob } from './weights.job.ts';

/** How weights are made; times in milliseconds. */
export type Weighing = {
  policy: WeightPolicy;
  /** Null: nobody knows who is registered, and no weights are computed. */
  metagraph: Metagraph | null;
  /** Whether simulated GPUs score: in a marketplace on one's own machine only. */
  embedded: boolean;
  cycleMs: number;
  epochMs: number;
  /** Evidence and epochs older than this are forgotten. */
  keptDays: number;
};

export type WeightsDeps = Weighing & {
  ledger: Ledger;
  clock: Clock;
  log: Log;
  signer: Signer;
  /** Whose epochs are gone on from. */
  trusted: readonly TrustedHotkey[];
  outbox: Outbox;
  evidence: EvidenceService;
  /** Whether it falls to this process now, of those that share the ledger. */
  isOurs(): Promise<boolean>;
};

export function createWeights(deps: WeightsDeps) {
  const { ledger, clock, log, metagraph, policy, cycleMs } = deps;
  return createWeightsJob({
    ...deps,
    cycles: createCycles({ ledger, clock, log, policy, cycleMs }),
    epochs: metagraph === null ? null : createEpochs({ ...deps, metagraph }),
  });
}
