/** Series that are read from memory at each scrape, whole: what is not known any more is absent. */
import { Counter, Gauge, type Registry } from 'prom-client';

export type Sample = { labels: Readonly<Record<string, string | number>>; value: number };

/** One metric with all its series. */
export type Family = {
  name: string;
  help: string;
  type: 'gauge' | 'counter';
  labels: readonly string[];
  /** Now; reads memory only. */
  samples(): readonly Sample[];
};

/** Adds it to a registry. Throws where the name is taken. */
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
        // Without labels a reset leaves a 0, which nobody has measured.
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

/** A sample without labels, if there is a value. */
export function unlabelled(value: number | null | undefined): Sample[] {
  return value === null || value === undefined ? [] : [{ labels: {}, value }];
}
