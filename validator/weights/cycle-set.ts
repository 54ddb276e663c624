/** What weights are computed from: the stored cycles, and who is registered (validator reference 8). */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { Sha256 } from '../evidence/document.ts';
import { CYCLE_VERDICTS } from '../store/tables.ts';
import { ONE_PPM } from './weight-policy.ts';

const MAX_EXECUTORS = 100_000;
const MAX_CYCLES = 1_000;
const MAX_UID = 65_535;

/** One executor in one cycle, as its evidence says. */
export const CycleEntry = z.strictObject({
  executor_id: z.uuid(),
  hotkey: Hotkey,
  /** The document that all of this is read from. */
  evidence_id: Sha256,
  verdict: z.enum(CYCLE_VERDICTS),
  simulated: z.boolean(),
  gpu_model: z.string().max(200),
  gpu_count: z.int().min(0).max(1_024),
  rented: z.boolean(),
  /** Minutes of good cycles in the window that the policy states. */
  uptime_minutes: z.int().min(0),
  /** Whether containers in containers were seen to run. */
  runtime_proven: z.boolean(),
  collateral: z.boolean(),
  /** Exponential average of its failures, this cycle's included. */
  failure_ppm: z.int().min(0).max(ONE_PPM),
  /** Micro-USD per GPU and hour that its provider asks for; null where it is not known. */
  price_uusd: z.int().min(0).nullable(),
  /** Null where it was not measured. */
  bandwidth_mbit: z.int().min(0).nullable(),
});
export type CycleEntry = z.output<typeof CycleEntry>;

export const Cycle = z.strictObject({
  number: z.int().min(0),
  entries: z.array(CycleEntry).max(MAX_EXECUTORS),
});
export type Cycle = z.output<typeof Cycle>;

export const Neuron = z.strictObject({ uid: z.int().min(0).max(MAX_UID), hotkey: Hotkey });
export type Neuron = z.output<typeof Neuron>;

/** Who is registered, each once. */
export const Neurons = z
  .array(Neuron)
  .max(MAX_UID + 1)
  .refine(
    (neurons) =>
      new Set(neurons.map(({ uid }) => uid)).size === neurons.length &&
      new Set(neurons.map(({ hotkey }) => hotkey)).size === neurons.length,
    'A uid or a hotkey stands there twice',
  );

export const CycleSet = z.strictObject({
  epoch: z.int().min(0),
  validator: Hotkey,
  /** Whether simulated GPUs score: in a marketplace on one's own machine only. */
  embedded: z.boolean(),
  neurons: Neurons,
  /** Oldest first. */
  cycles: z.array(Cycle).max(MAX_CYCLES),
});
export type CycleSet = z.output<typeof CycleSet>;

// MERGED validator/weights/cycle-set.ts: The hash over what weights are computed from, taken a cycle at a time. Pure.
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
