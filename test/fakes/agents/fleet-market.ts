/** The market of a fleet in memory, as the public routes show it to a renter. */
import type { FreeNode, RentedPod, RenterClient } from '../../../validator/probes/renter-client.ts';
import type { FleetHost } from '../../../validator/simulate/fleet/fleet-host.ts';
import type { HostFleet } from '../../../validator/simulate/fleet/host-fleet.ts';
import { PUBLIC_KEY } from '../scenes/market-fixture.ts';

const TEMPLATE = '1948937e-5049-47ad-8e26-bcf1a4549d70';
const MEMORY_SHARE = 0.9;
const PRICE = 2;

/** `isVerified`: the market lists only hosts that have passed. Records the executors that were rented. */
export function createFleetMarket(fleet: HostFleet, isVerified: (host: FleetHost) => boolean) {
  const pods = new Map<string, FleetHost>();
  const rented: string[] = [];
  const hostOf = (podId: string) => {
    const host = pods.get(podId);
    if (host === undefined) throw new Error(`there is no pod ${podId}`);
    return host;
  };

  const client: RenterClient = {
    freeNodes: async () =>
      fleet
        .hosts()
        .filter((host) => !host.listing.rented && isVerified(host))
        .map((host): FreeNode => {
          const count = fleet.inventoryOf(host).gpu.devices.length;
          return {
            id: host.id,
            price_per_gpu: PRICE,
            gpu_count: count,
            available_gpu_count: count,
            min_gpu_count_for_rental: count,
          };
        }),
    templates: async () => [{ id: TEMPLATE, startup_commands: 'sleep infinity', user_id: null }],
    async rent(executorId) {
      const host = fleet.hosts().find(({ id }) => id === executorId);
      if (host === undefined) throw new Error(`there is no host ${executorId}`);
      await fleet.rent(host);
      const podId = `pod-${rented.length}`;
      pods.set(podId, host);
      rented.push(executorId);
      return podOf(host, podId);
    },
    pod: async (podId) => podOf(hostOf(podId), podId),
    async end(podId) {
      fleet.endRental(hostOf(podId));
    },
  };

  /** States the offer of the listing, whatever the pod has. */
  function podOf(host: FleetHost, id: string): RentedPod {
    const { gpu, cpu, memory, disk } = fleet.inventoryOf(host);
    return {
      id,
      status: 'RUNNING',
      ssh_connect_cmd: `ssh root@${host.listing.executor_ip_address} -p 31000`,
      ssh_host_key: PUBLIC_KEY,
      gpu_name: gpu.devices[0]?.name ?? '',
      gpu_count: String(gpu.devices.length),
      cpu_count: cpu.cores,
      ram_total: Math.floor(memory.total_kib * MEMORY_SHARE),
      executor: {
        gpu_count: gpu.devices.length,
        simulated: false,
        specs: {
          gpu: { details: gpu.devices.map((card) => ({ capacity: card.memory_total_mib })) },
          hard_disk: { free: disk.free_kib },
        },
      },
    };
  }
  return { client, rented };
}
