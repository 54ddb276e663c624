/** Cordons: faults because of which a card accepts no new pods. */
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import type { HealthReading } from './gpu-driver.ts';
import type { Cordon, GpuHealthStore, ObservedCard } from './gpu-health.store.ts';
import { pciKey } from './xid.ts';

/** Identity of a GPU or MIG device. */
export type GpuIdentity = {
  uuid: string;
  pci_bus_id: string | null;
  mig: { parent_uuid: string } | null;
};

/** Sources of cordons, most severe first. */
const SOURCES: readonly Cordon['source'][] = ['presence', 'xid', 'inventory'];

/** Returns the cordon of a device or of its parent card; null if there is none. Pure. */
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
    /** Returns the cordon in the form of the inventory. */
    viewOf(device: GpuIdentity): GpuDevice['cordoned'] {
      const cordon = of(device);
      if (cordon === null) return null;
      return { reason: `${cordon.reason}: ${cordon.message}`, since_ms: cordon.since_ms };
    },
  };
}

export type CordonPlan = {
  seen: ObservedCard[];
  put: Cordon[];
  drop: Pick<Cordon, 'subject' | 'source'>[];
};

export type CordonFacts = {
  nowMs: number;
  /** Cards observed since the host booted. */
  cards: readonly ObservedCard[];
  /** UUIDs that pods hold, including MIG devices. */
  leased: readonly string[];
  cordons: readonly Cordon[];
};

/**
 * Compares the findings with the stored cordons and returns the changes. A fault that persists keeps its start time;
 * the cordon of a fault that has ended is removed.
 */
export function planCordons(reading: HealthReading, facts: CordonFacts): CordonPlan {
  const seen = reading.cards.map(({ uuid, pciBusId }) => ({ uuid, pci: pciKey(pciBusId) }));
  const found = [...reading.cards, ...reading.migDevices];
  const present = new Set(found.map(({ uuid }) => uuid));
  const expected = new Set([...facts.cards.map(({ uuid }) => uuid), ...facts.leased]);
  const lost = [...expected].filter((uuid) => !present.has(uuid));
  const wanted: Omit<Cordon, 'since_ms'>[] = [
    ...found.flatMap(({ uuid, fault }) =>
      fault === null ? [] : [{ subject: uuid, source: 'inventory' as const, ...fault }],
    ),
    ...lost.map((subject) => ({
      subject,
      source: 'presence' as const,
      reason: 'Lost',
      message: 'the driver no longer lists it',
    })),
  ];
  const isSame = (a: Pick<Cordon, 'subject' | 'source'>, b: typeof a) =>
    a.subject === b.subject && a.source === b.source;
  const put = wanted.flatMap((cordon) => {
    const old = facts.cordons.find((other) => isSame(other, cordon));
    if (old?.reason === cordon.reason && old.message === cordon.message) return [];
    const since_ms = old?.reason === cordon.reason ? old.since_ms : facts.nowMs;
    return [{ ...cordon, since_ms }];
  });
  const drop = facts.cordons.filter(
    // A card that does not answer retains its last cordon.
    (old) =>
      old.source !== 'xid' &&
      !(old.source === 'inventory' && !present.has(old.subject)) &&
      !wanted.some((cordon) => isSame(cordon, old)),
  );
  return { seen, put, drop };
}
