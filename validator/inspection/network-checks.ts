/**
 * Network checks of an executor: ports from outside; registry and template images from inside. Results are reused for
 * one interval.
 */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { EgressCheckResult } from '#shared/api/agent/host-checks.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { Facts } from '../checks/check.ts';
import type { Measured } from '../checks/measured.ts';
import { type AgentAnswer, MAX_PROBLEM_CHARS, NOT_QUERIED, query } from './inspect.ts';
import { createNetworkSums, type NetworkFacts } from './network-sums.ts';
import { checkPorts, type ReadPort } from './port-check.ts';

export type NetworkChecks = ReturnType<typeof createNetworkChecks>;

/** Maximum number of hosts checked in parallel; each needs hundreds of connections. */
const MAX_PARALLEL = 8;
/** Age in intervals up to which the results of other hosts are compared. */
const COMPARED_INTERVALS = 2;

const NOT_CHECKED: NetworkFacts = { ports: null, egress: null, templates: null, unanswered: [] };

export type NetworkCheckOptions = {
  clock: Clock;
  random: Random;
  readPort: ReadPort;
  isEnabled: boolean;
  /** Milliseconds for which results are reused. */
  intervalMs: number;
  /** Image whose digest agents must resolve; null skips the check. */
  egressImage: string | null;
  /** Images that agents must have or be able to pull. */
  templateImages: readonly string[];
};

export function createNetworkChecks(options: NetworkCheckOptions) {
  const { clock, random, readPort, isEnabled, intervalMs, egressImage, templateImages } = options;
  const limit = createSemaphore(MAX_PARALLEL);
  const sums = createNetworkSums(COMPARED_INTERVALS * intervalMs);
  const compared = (facts: NetworkFacts, executorId: string) =>
    sums.compared(facts, executorId, clock.monotonicMs());

  return {
    /**
     * Returns the last result while it is fresh. Otherwise runs the checks if `isFree`, which means that the host has
     * no pod of the marketplace. Skips rented and unreachable hosts.
     */
    async check(facts: Facts, client: AgentClient, isFree: boolean): Promise<NetworkFacts> {
      const { executor, inventory } = facts;
      if (!isEnabled || inventory === null || executor.rented) return NOT_CHECKED;
      const last = sums.latest(executor.id);
      if (last !== undefined && clock.monotonicMs() - last.atMs < intervalMs) {
        return compared(repeated(last.facts), executor.id);
      }
      if (!isFree) return NOT_CHECKED;
      const deps = { client, clock, random, readPort };
      const [ports, egress, templates] = await limit.run(() =>
        Promise.all([
          query('ports', checkPorts(deps, { ...facts, inventory })),
          egressImage === null ? NOT_QUERIED : queryEgress(client, executor.id, egressImage),
          templateImages.length === 0 ? null : queryImages(client, executor.id, templateImages),
        ]),
      );
      const unanswered = [
        ...ports.unanswered,
        ...egress.unanswered,
        ...unansweredRegistry(egress.answer),
      ];
      const found = { ports: ports.answer, egress: egress.answer, templates, unanswered };
      sums.set(executor.id, { atMs: clock.monotonicMs(), facts: found });
      return compared(found, executor.id);
    },
    /** Drops the results of executors that are not in `executorIds`. */
    retain: sums.retain,
  };
}

/**
 * Returns the registry query as unanswered if the agent reports its engine as unreachable. Otherwise the agent could
 * always evade the check.
 */
function unansweredRegistry(egress: EgressCheckResult | null): Measured['unanswered'] {
  if (egress?.registry !== 'unknown') return [];
  const problem = `the engine did not answer: ${egress.problem}`.slice(0, MAX_PROBLEM_CHARS);
  return [{ question: 'registry', problem, repeated: false }];
}

function repeated({ ports, egress, templates, unanswered }: NetworkFacts): NetworkFacts {
  return {
    ports: ports === null ? null : { ...ports, repeated: true },
    egress: egress === null ? null : { ...egress, repeated: true },
    templates: templates === null ? null : { ...templates, repeated: true },
    unanswered: unanswered.map((each) => ({ ...each, repeated: true })),
  };
}

function queryEgress(
  client: Pick<AgentClient, 'checkEgress'>,
  executorId: string,
  image: string,
): Promise<AgentAnswer<NonNullable<Measured['egress']>>> {
  const request = client.checkEgress({ executor_id: executorId, image });
  return query(
    'registry',
    request.then((result) => ({ ...result, others: null, repeated: false })),
  );
}

/** Returns null if the agent does not answer: older versions lack the route. */
async function queryImages(
  client: Pick<AgentClient, 'checkImages'>,
  executorId: string,
  images: readonly string[],
): Promise<Measured['templates']> {
  try {
    const result = await client.checkImages({ executor_id: executorId, images: [...images] });
    return { ...result, unavailable: [], repeated: false };
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}
