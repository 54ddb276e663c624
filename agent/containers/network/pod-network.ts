/** Bridge networks of pods: one per pod, so that pods cannot reach each other. */
import type { LeaseStore } from '../../leases/lease.store.ts';
import { type ContainerEngine, EngineError } from '../engine/engine.ts';
import { podObjectLabels } from '../engine/labels.ts';
import { type FirewallGuard, NetworkUnavailable } from './firewall.ts';
import { type Cidr, chooseSubnet } from './subnets.ts';

export type PodNetworks = ReturnType<typeof createPodNetworks>;

/** Length of the shortened pod id. With its prefix it fits into an interface name. */
const ID_CHARS = 12;
/** Maximum number of subnets that one attempt tries: other networks of the engine may use some. */
const MAX_TAKEN = 16;

export function networkName(podId: string): string {
  return `podwright-${shortId(podId)}`;
}

export function createPodNetworks(deps: {
  engine: ContainerEngine;
  executorId: string;
  leases: LeaseStore;
  pool: Cidr;
  firewall: FirewallGuard;
}) {
  const { engine, leases, firewall } = deps;
  /** Subnets that the engine has refused; they are tried last. */
  const refusedBefore = new Set<string>();

  const labelsOf = (podId: string) => podObjectLabels(deps.executorId, podId);

  /** Leases a subnet. The lease is written before the engine is called, so that a kill in between leaks no subnet. */
  function leaseSubnet(podId: string, refused: ReadonlySet<string>): string {
    const held = leases.heldBy('subnet', podId)[0]?.key;
    if (held !== undefined) return held;
    const leased = [...leases.list('subnet').map((lease) => lease.key), ...refused];
    const subnet =
      chooseSubnet(deps.pool, podId, new Set([...leased, ...refusedBefore])) ??
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
        refusedBefore.add(subnet);
        refused.add(subnet);
        freeSubnet(podId);
      }
    }
    throw new NetworkUnavailable('Other networks of the engine use the subnets of the pool');
  }

  return {
    /** Creates the network if it is missing and returns its name. Resolves when the firewall rules are in place. */
    async ensure(podId: string): Promise<string> {
      await Promise.all([firewall.ready(), create(podId)]);
      return networkName(podId);
    },
    /** Resolves when the firewall allows a container to start in an existing network. */
    guarded: () => firewall.ready(),
    /** Removes the pod's networks, found by label. A network of another owner with the same name is kept. */
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
