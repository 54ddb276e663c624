/** The validator's way from evidence to posted weights, put together. */
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Random } from '#shared/random.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { CentralClient } from '../central-client.ts';
import type { EvidenceService } from '../evidence/evidence.service.ts';
import type { Ledger } from '../ledger/ledger.tables.ts';
import { createOutbox } from '../outbox/outbox.service.ts';
import { createCycles } from './cycle.service.ts';
import { createEpochs } from './epoch.service.ts';
import type { Metagraph } from './metagraph.ts';
import type { WeightPolicy } from './weight-policy.ts';
import { createWeightsJob } from './weights.job.ts';
import { createWeightsDelivery } from './weights-delivery.ts';

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
  random: Random;
  log: Log;
  signer: Signer;
  central: CentralClient;
  evidence: EvidenceService;
};

export function createWeights(deps: WeightsDeps) {
  const { ledger, clock, random, log, signer, central, metagraph, ...weighing } = deps;
  const { policy, cycleMs, epochMs, embedded, keptDays, evidence } = weighing;
  const validator = signer.hotkey;
  const delivery = createWeightsDelivery({ ledger, log, validator, central });
  return createWeightsJob({
    clock,
    cycles: createCycles({ ledger, clock, log, policy, cycleMs }),
    epochs:
      metagraph === null
        ? null
        : createEpochs({ ledger, clock, log, policy, validator, embedded, metagraph, epochMs }),
    outbox: createOutbox({ ledger, clock, random, log, ...delivery }),
    evidence,
    keptDays,
  });
}
