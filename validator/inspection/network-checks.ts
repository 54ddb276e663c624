/** The ways between an executor and the world, looked at now and then: ports from outside, registries and images from inside. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { EgressCheckResult } from '#shared/api/agent/host-checks.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { Facts } from '../checks/check.ts';
import type { Measured } from '../checks/measured.ts';
import { type AgentAnswer, ask, MAX_PROBLEM_CHARS, NOT_QUERIED } from './inspect.ts';
import { askPort, checkPorts } from './port-check.ts';

export type NetworkChecks = ReturnType<typeof createNetworkChecks>;

/** Hosts looked at at once: each takes hundreds of connections. */
const MAX_PARALLEL = 8;

type Ways = Pick<Measured, 'ports' | 'egress' | 'templates' | 'unanswered'>;
const NOT_LOOKED_AT: Ways = { ports: null, egress: null, templates: null, unanswered: [] };

export type NetworkCheckOptions = {
  clock: Clock;
  random: Random;
  /** Whether ways are looked at. */
  isOn: boolean;
  /** A look counts for as long. */
  intervalMs: number;
  /** Whose digest agents have to learn; null: nothing is asked. */
  egressImage: string | null;
  /** Which they have to have, or be able to have. */
  templateImages: readonly string[];
};

export function createNetworkChecks(options: NetworkCheckOptions) {
  const { clock, random, isOn, intervalMs, egressImage, templateImages } = options;
  const places = createSemaphore(MAX_PARALLEL);
  let known = new Map<string, { atMs: number; ways: Ways }>();

  return {
    /**
     * The last look while it counts, else one now, unless something of ours is on the host. Nothing of hosts that are
     * rented or away.
     */
    async look(facts: Facts, client: AgentClient, isFree: boolean): Promise<Ways> {
      const { executor, inventory } = facts;
      if (!isOn || inventory === null || executor.rented) return NOT_LOOKED_AT;
      const last = known.get(executor.id);
      if (last !== undefined && clock.monotonicMs() - last.atMs < intervalMs) {
        return repeated(last.ways);
      }
      if (!isFree) return NOT_LOOKED_AT;
      const deps = { client, clock, random, askPort };
      const [ports, egress, templates] = await places.run(() =>
        Promise.all([
          ask('ports', checkPorts(deps, { ...facts, inventory })),
          egressImage === null ? NOT_QUERIED : askEgress(client, executor.id, egressImage),
          templateImages.length === 0 ? null : askImages(client, executor.id, templateImages),
        ]),
      );
      const unanswered = [...ports.unanswered, ...egress.unanswered, ...unlearnt(egress.answer)];
      const ways = { ports: ports.answer, egress: egress.answer, templates, unanswered };
      known.set(executor.id, { atMs: clock.monotonicMs(), ways });
      return ways;
    },
    /** Forgets all others. */
    keep(executorIds: ReadonlySet<string>): void {
      known = new Map([...known].filter(([id]) => executorIds.has(id)));
    },
  };
}

/** An engine that cannot be asked answers nobody else either: whoever always says so keeps it from being looked at. */
function unlearnt(egress: EgressCheckResult | null): Measured['unanswered'] {
  if (egress?.registry !== 'unknown') return [];
  const problem = `the engine could not be asked: ${egress.problem}`.slice(0, MAX_PROBLEM_CHARS);
  return [{ question: 'registry', problem, repeated: false }];
}

function repeated({ ports, egress, templates, unanswered }: Ways): Ways {
  return {
    ports: ports === null ? null : { ...ports, repeated: true },
    egress: egress === null ? null : { ...egress, repeated: true },
    templates: templates === null ? null : { ...templates, repeated: true },
    unanswered: unanswered.map((each) => ({ ...each, repeated: true })),
  };
}

function askEgress(
  client: Pick<AgentClient, 'checkEgress'>,
  executorId: string,
  image: string,
): Promise<AgentAnswer<EgressCheckResult & { repeated: boolean }>> {
  const asking = client.checkEgress({ executor_id: executorId, image });
  return ask(
    'registry',
    asking.then((result) => ({ ...result, repeated: false })),
  );
}

/** Null where the agent does not tell: one of an older program knows no such question. */
async function askImages(
  client: Pick<AgentClient, 'checkImages'>,
  executorId: string,
  images: readonly string[],
): Promise<Measured['templates']> {
  try {
    const result = await client.checkImages({ executor_id: executorId, images: [...images] });
    return { ...result, repeated: false };
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}
