/** Metric families whose samples are read from memory at each scrape; samples without a value are absent. */
import { Counter, Gauge, type Registry } from 'prom-client';

export type Sample = { labels: Readonly<Record<string, string | number>>; value: number };

/** A metric with all its series. */
export type Family = {
  name: string;
  help: string;
  type: 'gauge' | 'counter';
  labels: readonly string[];
  /** Returns the current samples; reads memory only. */
  samples(): readonly Sample[];
};

/** Registers the family. Throws if the name is already registered. */
export function registerFamily(registry: Registry, family: Family): void {
  const shape = {
    name: family.name,
    help: family.help,
    labelNames: [...family.labels],
    registers: [registry],
  };
  if (family.type === 'gauge') {
    new Gauge({
      ...shape,
      collect() {
        // Without labels, `reset` would set a 0 that was never measured.
        if (family.labels.length === 0) this.remove();
        else this.reset();
        for (const { labels, value } of family.samples()) this.set(labels, value);
      },
    });
    return;
  }
  new Counter({
    ...shape,
    collect() {
      if (family.labels.length === 0) this.remove();
      else this.reset();
      for (const { labels, value } of family.samples()) this.inc(labels, value);
    },
  });
}

/** Returns one sample without labels, or none without a value. */
export function unlabelled(value: number | null | undefined): Sample[] {
  return value === null || value === undefined ? [] : [{ labels: {}, value }];
}
