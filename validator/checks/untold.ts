/** What an inventory leaves out that an agent of this program finds on every host of its kind: nothing to compare with. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { Unanswered } from './measured.ts';

/**
 * Only what no honest host is without: Linux tells its processors, a machine with NVIDIA's driver its PCI bus, and that
 * driver the cards that it drives there. Memory (a kernel without NUMA nodes), the disk (a file system on several
 * devices, or on none), UUIDs of cards that sleep and the place of the driver's library are not everywhere to be had.
 */
export function untoldIn({ gpu, sources }: Inventory): Unanswered[] {
  const hasCards = gpu.driver === 'nvidia' && gpu.error === null && gpu.devices.length > 0;
  const onBus = sources?.pci_gpus ?? null;
  const untold = [
    (sources?.cpus_present ?? null) === null ? 'processors' : null,
    hasCards && onBus === null ? 'cards on the PCI bus' : null,
    hasCards && onBus !== 0 && (sources?.driver_gpus ?? null) === null
      ? 'cards of the driver'
      : null,
  ].filter((each) => each !== null);
  if (untold.length === 0) return [];
  const problem = `nothing of the kernel’s own about its ${untold.join(', ')}`;
  return [{ question: 'sources', problem, repeated: false }];
}
