/** The hash over what weights are computed from, taken a cycle at a time. Pure. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import type { Cycle, CycleSet } from './cycle-set.ts';

/** Of a set what is no cycle. */
export type CycleSetHead = Omit<CycleSet, 'cycles'>;

/**
 * SHA-256 of the canonical JSON of a CycleSet, hex: the same whatever order executors and neurons come in, for the
 * order of cycles alone has a meaning. `cycles` is the first of its keys, so the rest may come last.
 */
export function createInputHash() {
  const hash = createHash('sha256').update('{"cycles":[');
  let isFirst = true;

  return {
    add({ number, entries }: Cycle): void {
      const sorted = entries.toSorted((a, b) => (a.executor_id < b.executor_id ? -1 : 1));
      hash.update(isFirst ? '{"entries":[' : ',{"entries":[');
      for (const [at, entry] of sorted.entries()) {
        hash.update(at === 0 ? canonicalJson(entry) : `,${canonicalJson(entry)}`);
      }
      hash.update(`],"number":${number}}`);
      isFirst = false;
    },

    /** Once, after the last cycle. */
    end(head: CycleSetHead): string {
      const neurons = head.neurons.toSorted((a, b) => a.uid - b.uid);
      const rest = canonicalJson({ ...head, neurons });
      return hash.update(`],${rest.slice(1)}`).digest('hex');
    },
  };
}
