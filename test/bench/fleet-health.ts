/** The checks of a validator over a fleet whose agents answer at once, in the same process. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { createCheckHistory } from '../../validator/checks/check-history.service.ts';
import { createProofBaselines } from '../../validator/checks/proof-baseline.service.ts';
import { createEvidence } from '../../validator/evidence/evidence.service.ts';
import { createHealthService } from '../../validator/inspection/health.service.ts';
import { createHostLocks } from '../../validator/inspection/host-locks.ts';
import { createInspectionQueue } from '../../validator/inspection/inspection-queue.ts';
import { createNetworkChecks } from '../../validator/inspection/network-checks.ts';
import { readPort } from '../../validator/inspection/port-check.ts';
import { createProofRounds } from '../../validator/inspection/proof/proof-round.ts';
import { createVerifier } from '../../validator/inspection/proof/verifier.ts';
import { createReportedNodes } from '../../validator/inspection/reports/reported-nodes.service.ts';
import type { EvidenceStore } from '../../validator/store/tables.ts';
import { TRUSTED_CLOCK } from '../fakes/trusted-clock.ts';
import { checkRun } from '../fixtures/check-run.ts';
import { executorId, goldenPolicy } from '../fixtures/cycle-set.ts';

const AT_ONCE = 512;
/** Milliseconds between two checks of an executor; a run checks each once. */
const INTERVAL_MS = 1_000_000;

const log = createLog({ name: 'bench', level: 'silent' });

/** Health service over `fleet` executors. `onLook` is called for each inventory that is read. */
export function fleetHealth(
  store: EvidenceStore,
  { fleet, signer, onLook }: { fleet: number; signer: Signer; onLook?: () => void },
) {
  const clock = systemClock;
  const ids = new Set(Array.from({ length: fleet }, (_, at) => executorId(at)));
  const { facts } = checkRun({ atMs: clock.now() });
  const { inventory } = facts;
  if (inventory === null) throw new Error('no inventory');
  const answer = async () => ({ ...structuredClone(inventory), collected_ms: clock.now() });
  const checkHistory = createCheckHistory({ store, clock });
  const baselines = createProofBaselines({ store, clock });
  return createHealthService({
    clock,
    log,
    policy: facts.policy,
    atOnce: AT_ONCE,
    checkHistory,
    baselines,
    metrics: { checked: () => undefined, passed: () => undefined },
    directory: {
      ids: async () => ids,
      drainChanged: () => [],
      find: async (id) => ({ ...facts.executor, id }),
    },
    clientOf: ({ id }) => ({
      ...({} as AgentClient),
      async inventory() {
        onLook?.();
        return { ...(await answer()), executor_id: id };
      },
      listPods: async () => [],
      verify: async () => ({ ok: true, reason_code: null, steps: [], simulated: false }),
    }),
    observePort: async () => ({ found: 'refused', sent: 'tls' }),
    identityOf: async () => ({ publicKey: 'ab'.repeat(32), enrolledUntilMs: 2 ** 43 }),
    inspections: createInspectionQueue({
      trust: TRUSTED_CLOCK,
      store,
      clock,
      holder: 'bench',
      intervalMs: INTERVAL_MS,
      pauseMs: 0,
    }),
    proofs: createProofRounds({
      clock,
      random: systemRandom,
      size: null,
      intervalMs: 0,
      baselines,
      verifier: createVerifier(),
      onProven: () => undefined,
    }),
    network: createNetworkChecks({
      clock,
      random: systemRandom,
      readPort,
      isEnabled: false,
      intervalMs: 0,
      egressImage: null,
      templateImages: [],
    }),
    lines: { facts: async () => null },
    hiddenRentals: { facts: async () => null },
    hosts: createHostLocks({ store, clock, log, holder: 'bench' }),
    rentals: { probe: async () => null, clear: async () => true, podsAt: async () => [] },
    reported: createReportedNodes({ store, clock, intervalMs: 0 }),
    readBanner: async () => null,
    releases: async () => null,
    evidence: createEvidence({
      store,
      signer,
      trusted: [signer],
      clock,
      log,
      policy: goldenPolicy(),
    }),
    outbox: { runOnce: async () => undefined },
    stopping: new AbortController().signal,
  });
}
