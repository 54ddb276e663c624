/** The bridge of a pod: one per pod, so that pods reach neither each other nor anything by name (agent reference 10). */
import type { LeaseStore } from '../../leases/lease.store.ts';
import { type ContainerEngine, EngineError, LABELS } from '../engine/engine.ts';
import { type FirewallGuard, NetworkUnavailable } from './firewall.ts';
import { type Cidr, chooseSubnet } from './subnets.ts';

export type PodNetworks = ReturnType<typeof createPodNetworks>;

/** Enough of the id to be unique on a host; with the prefix it just fits into an interface's name. */
const ID_CHARS = 12;
/** Subnets found taken by others' networks in one attempt; the pod's next attempt goes on from there. */
const MAX_TAKEN = 16;

/** The name of a pod's network. */
export function networkName(podId: string): string {
  return `podwright-${shortId(podId)}`;
}

/** Networks carry the executor's label and the pod's: two agents on one engine keep apart by it. */
export function createPodNetworks(deps: {
  engine: ContainerEngine;
  executorId: string;
  leases: LeaseStore;
  pool: Cidr;
  firewall: FirewallGuard;
}) {
  const { engine, leases, firewall } = deps;
  /** Refused by the engine since the start of the agent, and therefore tried last. */
  const others = new Set<string>();

  const labelsOf = (podId: string) => ({
    [LABELS.managed]: '1',
    [LABELS.executor]: deps.executorId,
    [LABELS.pod]: podId,
  });

  /** Durable before the engine is asked, so that a kill in between leaks nothing. */
  function leaseSubnet(podId: string, refused: ReadonlySet<string>): string {
    const held = leases.heldBy('subnet', podId)[0]?.key;
    if (held !== undefined) return held;
    const leased = [...leases.list('subnet').map((lease) => lease.key), ...refused];
    const subnet =
      chooseSubnet(deps.pool, podId, new Set([...leased, ...others])) ??
      chooseSubnet(deps.pool, podId, new Set(leased));
    if (subnet === null) throw new NetworkUnavailable('Every subnet for pods is in use');
    leases.take({ kind: 'subnet', key: subnet, podId, slot: '' });
    return subnet;
  }

  function freeSubnet(podId: string): void {
    for (const lease of leases.heldBy('subnet', podId)) leases.remove(lease);
  }

  async function create(podId: string): Promise<void> {
    const bridgeName = `${firewall.bridgePrefix}${shortId(podId)}`;
    const refused = new Set<string>();
    while (refused.size < MAX_TAKEN) {
      const subnet = leaseSubnet(podId, refused);
      try {
        await engine.ensureNetwork(networkName(podId), labelsOf(podId), { subnet, bridgeName });
        return;
      } catch (error) {
        if (!(error instanceof EngineError) || error.kind !== 'subnet_taken') throw error;
        others.add(subnet);
        refused.add(subnet);
        freeSubnet(podId);
      }
    }
    throw new NetworkUnavailable('Subnet after subnet is used by other networks of the engine');
  }

  return {
    /** The network's name; makes it when it is missing. Nothing is started in it before the rules stand. */
    async ensure(podId: string): Promise<string> {
      await Promise.all([firewall.ready(), create(podId)]);
      return networkName(podId);
    },
    /** The rules stand, or need not: something may be started in a network that is there. */
    guarded: () => firewall.ready(),
    /** Removes the pod's networks, found by label: a network of another owner under our name stays. */
    async remove(podId: string): Promise<void> {
      for (const network of await engine.listNetworks(labelsOf(podId))) {
        await engine.removeNetwork(network.id);
      }
      freeSubnet(podId);
    },
  };
}

function shortId(podId: string): string {
  return podId.replaceAll('-', '').slice(0, ID_CHARS);
}
