/** Which cordons follow from what the cards say now (agent reference 9). Pure. */

import type { HealthReading } from './gpu-driver.ts';
import type { Cordon, SeenCard } from './gpu-health.store.ts';
import { pciKey } from './xid.ts';

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
