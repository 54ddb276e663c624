/** Collects the facts of an executor: reads its agent, runs the trials on an idle host, and reads the agent again. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { CheckRequest, ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { Facts } from '../checks/check.ts';
import { type HostLocks, LONGEST_WAIT_MS } from './host-locks.ts';
import { type Inspection, NOT_QUERIED, readAgent, recheck, runProbe } from './inspect.ts';
import type { NetworkChecks } from './network-checks.ts';
import { type ProofPlace, unprovenIn } from './proof/proof-round.ts';
import type { RentalProbes } from './rental-probe/rental-probe.service.ts';
import { yieldedToRenter } from './rental-probe/rental-probe.ts';
import type { ReportedNodes } from './reports/reported-nodes.service.ts';

const PARALLEL_INSPECTIONS = 32;

export type FactsOptions = Omit<Inspection, 'client'> & {
  clientOf(executor: ExecutorToCheck): AgentClient;
  network: NetworkChecks;
  hosts: Pick<HostLocks, 'run'>;
  rentals: Pick<RentalProbes, 'probe' | 'clear' | 'podsAt'>;
  reported: Pick<ReportedNodes, 'rentalSince'>;
};

/** `request` is null for an executor that was due and claimed. */
export type Trigger = { place: ProofPlace; request: CheckRequest | null };

/** Returns the function that collects the facts. The function never rejects because of the host. */
export function createFactsCollector(options: FactsOptions) {
  const reading = createSemaphore(PARALLEL_INSPECTIONS);

  /**
   * Runs the trials, which take long, before reading the host again: the verdict concerns the host after the trials.
   */
  async function collect(executor: ExecutorToCheck, trigger: Trigger): Promise<Facts> {
    const inspection = { ...options, client: options.clientOf(executor) };
    const first = await reading.run(() => readAgent(executor, inspection));
    const tried = await runLockedTrials(first, inspection.client, trigger);
    const facts = await reading.run(() => recheck(tried, inspection));
    const own_pods = await options.rentals.podsAt(executor.id, facts.receivedMs);
    // Only regular checks count as consecutive failures.
    const isRequested = trigger.request !== null;
    const unanswered = facts.measured.unanswered.map((each) => {
      return { ...each, repeated: each.repeated || isRequested };
    });
    return { ...facts, measured: { ...facts.measured, own_pods, unanswered } };
  }

  /** Runs the trials of an idle host under its lock; skips them if the lock is not free in time. */
  async function runLockedTrials(
    facts: Facts,
    client: AgentClient,
    trigger: Trigger,
  ): Promise<Facts> {
    const { executor, inventory } = facts;
    if (inventory === null || executor.rented) return runTrials(facts, client, trigger);
    const trials = () => runTrials(facts, client, trigger);
    const tried = await options.hosts.run(executor.id, LONGEST_WAIT_MS, trials);
    trigger.place.leave();
    return tried ?? facts;
  }

  /** Proofs begin once all executors of the group were read. */
  async function runTrials(facts: Facts, client: AgentClient, trigger: Trigger): Promise<Facts> {
    const { rentals, network, reported } = options;
    const { request } = trigger;
    const isFree = await rentals.clear(facts.executor.id, client);
    const proven = await trigger.place.prove(facts, client, isFree);
    const reached = await network.check(facts, client, isFree);
    const sinceMs = await reported.rentalSince(facts.executor.id);
    const rental = await rentals.probe(facts, client, request !== null, sinceMs);
    // Starts no probe container if a renter has arrived meanwhile.
    const container = yieldedToRenter(rental)
      ? NOT_QUERIED
      : await runProbe(facts, client, request);
    const unanswered = [...unprovenIn(proven), ...reached.unanswered, ...container.unanswered];
    const measured = { ...facts.measured, ...reached, ...proven, rental, unanswered };
    return { ...facts, probe: container.answer, measured };
  }

  return collect;
}
