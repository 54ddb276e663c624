/** Honest hosts that are unusual or have bad days, each with its differences from a usual host, cycle by cycle. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { everyCard, sourcesChanged, withGpu } from '../../validator/coverage/cheats.ts';
import { USUAL_MS } from '../../validator/coverage/honest-host.ts';
import { type Conduct, HONEST } from '../../validator/simulate/fleet/conduct.ts';
import type { FleetHost } from '../../validator/simulate/fleet/fleet-host.ts';
import type { HostFleet } from '../../validator/simulate/fleet/host-fleet.ts';

export type HonestHost = {
  host: string;
  /** Changes the host before cycle `cycle`, counted from 1. `nowMs`: the time of the cycle. */
  before(host: FleetHost, cycle: number, scene: Scene): void | Promise<void>;
};

type Scene = { nowMs: number; fleet: HostFleet };

const conducts = (change: Partial<Conduct>): HonestHost['before'] => {
  return (host) => {
    host.conduct = { ...HONEST, ...change };
  };
};
/** Returns a function that changes the host's conduct in some cycles only. */
const at =
  (isThen: (cycle: number) => boolean, change: Partial<Conduct>): HonestHost['before'] =>
  (host, cycle) => {
    host.conduct = isThen(cycle) ? { ...HONEST, ...change } : HONEST;
  };
const reports = (inventory: Conduct['inventory']) => conducts({ inventory });
const once = (cycle: number) => (now: number) => now === cycle;

const GIB = 1_048_576;
const withCores = (cores: number) => (inventory: Inventory) =>
  sourcesChanged({ ...inventory, cpu: { ...inventory.cpu, cores } }, () => ({
    cpus_present: cores,
  }));
const MIG = 'NVIDIA H100 80GB HBM3 MIG 3g.40gb';

export const HONEST_HOSTS: readonly HonestHost[] = [
  { host: 'a usual host', before: () => undefined },
  {
    host: 'a slow disk, on which the first pod takes three minutes to start',
    before(host, cycle) {
      host.startMs = cycle === 1 ? 180_000 : 60_000;
    },
  },
  { host: 'one core', before: reports(withCores(1)) },
  {
    host: 'NAT that loses a port of ten',
    before: conducts({ answer: (port, honest) => (port % 10 === 7 ? null : honest) }),
  },
  {
    host: 'a clock that is 20 s off',
    before: reports((inventory) => ({
      ...inventory,
      collected_ms: inventory.collected_ms + 20_000,
    })),
  },
  {
    host: 'memory that is added while it runs',
    before: at((cycle) => cycle > 40, {
      inventory: (inventory) => {
        const total_kib = 512 * GIB;
        const more = { ...inventory, memory: { total_kib, available_kib: total_kib } };
        return sourcesChanged(more, () => ({ memory_kib: total_kib }));
      },
    }),
  },
  {
    host: 'an older driver whose update is pending',
    before: reports((inventory) => {
      const gpu = { ...inventory.gpu, driver_version: '530.30.02' };
      return sourcesChanged({ ...inventory, gpu }, () => ({ driver_library_sha256: null }));
    }),
  },
  {
    host: 'a container in a container, whose kernel hides its data',
    before: reports((inventory) => {
      const docker = {
        ...inventory.docker,
        storage_driver: 'fuse-overlayfs',
        sysbox_runtime: true,
      };
      return sourcesChanged({ ...inventory, docker }, () => ({
        memory_kib: null,
        disk_kib: null,
        disk_writable: null,
      }));
    }),
  },
  {
    host: 'load that delays every third proof',
    before: at((cycle) => cycle % 3 === 0, { proofMs: 5 * USUAL_MS, cardsMs: 5 * USUAL_MS }),
  },
  {
    host: 'load that delays every proof',
    before: conducts({ proofMs: 1_700, cardsMs: 1_700 }),
  },
  {
    host: 'cards with half of their power',
    before: conducts({
      ...everyCard({ power_limit_w: 350, power_enforced_limit_w: 350 }),
      cardsMs: 1_600,
    }),
  },
  {
    host: 'a restart, after which the driver lists no card for a minute',
    before(host, cycle) {
      host.isUp = cycle !== 30;
      const loads = withGpu(() => ({ devices: [] }));
      host.conduct = cycle === 31 ? { ...HONEST, ...loads } : HONEST;
    },
  },
  {
    host: 'a driver that cannot be read once',
    before: at(
      once(35),
      withGpu(() => ({ devices: [], error: 'NVML: driver not loaded' })),
    ),
  },
  {
    host: 'an engine that restarts during an inspection',
    before(host, cycle) {
      host.startsContainers = cycle !== 33;
    },
  },
  {
    host: 'an IPv6 address',
    before(host) {
      host.listing = { ...host.listing, executor_ip_address: '2001:db8::1' };
    },
  },
  {
    host: 'a card that is replaced in an announced maintenance',
    before(host, cycle, { nowMs }) {
      if (cycle === 50) host.listing = { ...host.listing, maintenance_ms: nowMs };
      if (cycle < 50) return;
      host.conduct = {
        ...HONEST,
        inventory: (inventory) => {
          const renamed = (uuid: string) => uuid.replace(/..$/, 'ee');
          const [first, ...others] = inventory.gpu.devices;
          if (first === undefined) return inventory;
          const devices = [{ ...first, uuid: renamed(first.uuid) }, ...others];
          const gpu = { ...inventory.gpu, devices };
          return sourcesChanged({ ...inventory, gpu }, () => ({
            driver_gpus: devices.map(({ uuid, name: model }) => ({ uuid, model })),
          }));
        },
      };
    },
  },
  {
    host: 'a monitoring program on its cards',
    before: conducts(everyCard({ processes: 1, memory_used_mib: 300, utilization_percent: 1 })),
  },
  {
    host: 'a rental of ten hours, beside a declared monitoring program',
    async before(host, cycle, { fleet }) {
      if (cycle === 21) await fleet.rent(host);
      if (cycle === 61) fleet.endRental(host);
      const watched = everyCard({ processes: 2, outside_processes: 1, declared_processes: 1 });
      if (cycle >= 21 && cycle < 61) host.conduct = { ...HONEST, ...watched };
    },
  },
  {
    host: 'MIG instances',
    before(host) {
      host.listing = { ...host.listing, gpu_type: MIG };
      host.conduct = {
        ...HONEST,
        inventory: (inventory) => {
          const parent_uuid = inventory.gpu.devices[0]?.uuid ?? '';
          const devices = inventory.gpu.devices.map((device) => ({
            ...device,
            name: MIG,
            uuid: device.uuid.replace('GPU', 'MIG'),
            memory_total_mib: 40_448,
            mig: { profile: '3g.40gb', parent_uuid },
          }));
          const split = { ...inventory, gpu: { ...inventory.gpu, devices } };
          return sourcesChanged(split, ({ driver_gpus: cards }) => ({
            driver_gpus: cards?.slice(0, 1) ?? null,
            pci_gpus: 1,
          }));
        },
      };
    },
  },
  {
    host: 'a third card that is passed to a virtual machine',
    before: reports((inventory) => sourcesChanged(inventory, () => ({ pci_gpus: 3 }))),
  },
  {
    host: 'sleeping cards whose UUIDs the driver does not report',
    before: reports((inventory) =>
      sourcesChanged(inventory, ({ driver_gpus: cards }) => ({
        driver_gpus: cards?.map((card) => ({ ...card, uuid: null })) ?? null,
      })),
    ),
  },
  { host: 'a slow link', before: conducts({ delayMs: 1_500 }) },
  { host: 'slow readings of its hardware', before: conducts({ inventoryMs: 900 }) },
  {
    host: 'little free disk',
    before: reports((inventory) => ({
      ...inventory,
      disk: { ...inventory.disk, free_kib: 101 * GIB },
    })),
  },
  {
    host: 'a full disk for one inspection',
    before: at(once(44), {
      inventory: (inventory) => ({ ...inventory, disk: { ...inventory.disk, free_kib: GIB } }),
    }),
  },
  {
    host: 'a memory error that a reset clears',
    before: at(once(52), everyCard({ ecc_errors: 1 })),
  },
  { host: 'a proof whose answer is lost', before: at(once(55), { cuts: ['/v1/challenges'] }) },
  {
    host: 'a package update that uses all cores',
    before: at((cycle) => cycle % 24 === 5, {
      inventory: (inventory) => ({
        ...inventory,
        cpu: { ...inventory.cpu, utilization_percent: 100 },
      }),
    }),
  },
  {
    host: 'no deposit',
    before(host) {
      host.listing = { ...host.listing, collateral_deposited: false };
    },
  },
  {
    host: 'a firewall that the agent cannot set, and no disk quotas',
    before: reports((inventory) => ({
      ...inventory,
      isolation: { ...inventory.isolation, firewall: 'unavailable', disk_quota: 'none' },
    })),
  },
];

/** Outages that all hosts of the fleet share: of a registry, and of the validator's uplink. */
export function inOutage(conduct: Conduct, cycle: number): Conduct {
  if (cycle >= 20 && cycle < 24) return { ...conduct, egress: 'unreachable', images: 'missing' };
  if (cycle >= 70 && cycle < 74) return { ...conduct, answer: () => null };
  return conduct;
}
