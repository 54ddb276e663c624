/**
 * Sums of the latest network checks of all hosts, so that each host is compared with the others without reading the
 * results of all of them.
 */
import type { Measured } from '../checks/measured.ts';

export type NetworkFacts = Pick<Measured, 'ports' | 'egress' | 'templates' | 'unanswered'>;
type Checked = { atMs: number; facts: NetworkFacts };
/** Number of hosts, and of those with success. */
type Sum = { tried: number; reached: number };

export type NetworkSums = ReturnType<typeof createNetworkSums>;

/** Results of the last `keptMs` milliseconds count. Times are those of a clock that never goes back. */
export function createNetworkSums(keptMs: number) {
  /** Latest result of each host, oldest first. */
  const known = new Map<string, Checked>();
  const ports: Sum = { tried: 0, reached: 0 };
  const registries: Sum = { tried: 0, reached: 0 };
  const images = new Map<string, Sum>();

  /** Adds or subtracts the results of one host. */
  function count(facts: NetworkFacts, by: 1 | -1): void {
    addTo(ports, portsIn(facts), by);
    addTo(registries, registriesIn(facts), by);
    for (const [image, own] of imagesIn(facts)) {
      const sum = images.get(image) ?? { tried: 0, reached: 0 };
      addTo(sum, own, by);
      if (sum.tried === 0) images.delete(image);
      else images.set(image, sum);
    }
  }

  function remove(id: string): void {
    const checked = known.get(id);
    if (checked === undefined) return;
    count(checked.facts, -1);
    known.delete(id);
  }

  function dropOld(nowMs: number): void {
    for (const [id, { atMs }] of known) {
      if (atMs >= nowMs - keptMs) return;
      remove(id);
    }
  }

  /** Images that most of the other hosts cannot pull. A present image does not show that its registry answers. */
  function unavailableFor(own: NetworkFacts | undefined): string[] {
    const owned = own === undefined ? new Map<string, Sum>() : imagesIn(own);
    return [...images].flatMap(([image, sum]) => {
      const { tried, reached } = without(sum, owned.get(image));
      return tried > 0 && reached * 2 < tried ? [image] : [];
    });
  }

  return {
    /** Latest result of a host; undefined if it is too old or was removed. */
    latest: (id: string): Checked | undefined => known.get(id),

    /** Replaces the result of a host. */
    set(id: string, checked: Checked): void {
      remove(id);
      known.set(id, checked);
      count(checked.facts, 1);
    },

    /** Adds what other hosts reached, so that an outage of a registry or of this validator's uplink fails none of them. */
    compared(facts: NetworkFacts, id: string, nowMs: number): NetworkFacts {
      dropOld(nowMs);
      const own = known.get(id)?.facts;
      return {
        ...facts,
        ports: facts.ports && { ...facts.ports, others: without(ports, own && portsIn(own)) },
        egress: facts.egress && {
          ...facts.egress,
          others: without(registries, own && registriesIn(own)),
        },
        templates: facts.templates && { ...facts.templates, unavailable: unavailableFor(own) },
      };
    },

    /** Drops the results of executors that are not in `executorIds`. */
    retain(executorIds: ReadonlySet<string>): void {
      for (const id of known.keys()) if (!executorIds.has(id)) remove(id);
    },
  };
}

function portsIn({ ports }: NetworkFacts): Sum {
  if (ports === null || ports.opened === 0) return { tried: 0, reached: 0 };
  return { tried: 1, reached: ports.reached > 0 ? 1 : 0 };
}

function registriesIn({ egress }: NetworkFacts): Sum {
  if (egress === null || egress.registry === 'unknown') return { tried: 0, reached: 0 };
  return { tried: 1, reached: egress.registry === 'answers' ? 1 : 0 };
}

/** Images by name; `reached` counts those that the host can pull. */
function imagesIn({ templates }: NetworkFacts): Map<string, Sum> {
  const found = new Map<string, Sum>();
  for (const { image, state } of templates?.images ?? []) {
    if (state !== 'pullable' && state !== 'missing') continue;
    const sum = found.get(image) ?? { tried: 0, reached: 0 };
    addTo(sum, { tried: 1, reached: state === 'pullable' ? 1 : 0 }, 1);
    found.set(image, sum);
  }
  return found;
}

function addTo(sum: Sum, { tried, reached }: Sum, by: 1 | -1): void {
  sum.tried += by * tried;
  sum.reached += by * reached;
}

const without = (sum: Sum, own: Sum | undefined): Sum => ({
  tried: sum.tried - (own?.tried ?? 0),
  reached: sum.reached - (own?.reached ?? 0),
});
