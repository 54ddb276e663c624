/** Whether a card is kept from new pods, and why. */
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import type { Cordon, GpuHealthStore } from './gpu-health.store.ts';
import { pciKey } from './xid.ts';

/** What identifies a GPU or MIG device. */
export type GpuIdentity = {
  uuid: string;
  pci_bus_id: string | null;
  mig: { parent_uuid: string } | null;
};

/** The gravest come first. */
const SOURCES: readonly Cordon['source'][] = ['presence', 'xid', 'inventory'];

/** The cordon of a device or of the card that it is part of; null for a sound one. Pure. */
export function cordonOf(device: GpuIdentity, cordons: readonly Cordon[]): Cordon | null {
  const subjects = new Set([device.uuid, device.mig?.parent_uuid, pciKey(device.pci_bus_id)]);
  const own = cordons.filter(({ subject }) => subject !== '' && subjects.has(subject));
  return own.toSorted((a, b) => SOURCES.indexOf(a.source) - SOURCES.indexOf(b.source))[0] ?? null;
}

export type GpuCordons = ReturnType<typeof createGpuCordons>;

export function createGpuCordons(store: Pick<GpuHealthStore, 'cordons'>) {
  const of = (device: GpuIdentity): Cordon | null => cordonOf(device, store.cordons());
  return {
    of,
    /** As the inventory shows it. */
    shown(device: GpuIdentity): GpuDevice['cordoned'] {
      const cordon = of(device);
      if (cordon === null) return null;
      return { reason: `${cordon.reason}: ${cordon.message}`, since_ms: cordon.since_ms };
    },
  };
}
