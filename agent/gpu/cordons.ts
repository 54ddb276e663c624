/** Whether a card is kept from new pods, and why. */
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import type { HealthReading } from './gpu-driver.ts';
import type { Cordon, GpuHealthStore, SeenCard } from './gpu-health.store.ts';
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

// MERGED agent/gpu/cordons.ts: Which cordons follow from what the cards say now (agent reference 9). Pure.
export type CordonPlan = {
  seen: SeenCard[];
  put: Cordon[];
  drop: Pick<Cordon, 'subject' | 'source'>[];
};

export type CordonFacts = {
  nowMs: number;
  /** Seen since the host booted. */
  cards: readonly SeenCard[];
  /** UUIDs that pods hold, MIG devices among them. */
  leased: readonly string[];
  cordons: readonly Cordon[];
};

/** A fault that lasts keeps its beginning; one that is gone takes its cordon along. */
export function planCordons(reading: HealthReading, facts: CordonFacts): CordonPlan {
  const seen = reading.cards.map(({ uuid, pciBusId }) => ({ uuid, pci: pciKey(pciBusId) }));
  const present = new Set([...seen.map(({ uuid }) => uuid), ...reading.migUuids]);
  const expected = new Set([...facts.cards.map(({ uuid }) => uuid), ...facts.leased]);
  const lost = [...expected].filter((uuid) => !present.has(uuid));
  const wanted: Omit<Cordon, 'since_ms'>[] = [
    ...reading.cards.flatMap(({ uuid, fault }) =>
      fault === null ? [] : [{ subject: uuid, source: 'inventory' as const, ...fault }],
    ),
    ...lost.map((subject) => ({
      ...{ subject, source: 'presence' as const },
      ...{ reason: 'Lost', message: 'the driver does not list it any more' },
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
    // What a card that does not answer had said last still stands.
    (old) =>
      old.source !== 'xid' &&
      !(old.source === 'inventory' && !present.has(old.subject)) &&
      !wanted.some((cordon) => isSame(cordon, old)),
  );
  return { seen, put, drop };
}
