/** Input of the weight computation: stored cycles and registered neurons, and the hash over both. */

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

/** One executor in one cycle, derived from its evidence. */
export const CycleEntry = z.strictObject({
  executor_id: z.uuid(),
  hotkey: Hotkey,
  /** Document from which the entry is derived. */
  evidence_id: Sha256,
  verdict: z.enum(CYCLE_VERDICTS),
  simulated: z.boolean(),
  gpu_model: z.string().max(200),
  gpu_count: z.int().min(0).max(1_024),
  /** Number of these GPUs that have no weight, because they passed no proof of work; absent for none. */
  weightless_gpus: z.int().min(1).max(1_024).optional(),
  rented: z.boolean(),
  /** Minutes of good cycles in the policy's uptime window. */
  uptime_minutes: z.int().min(0),
  /** True if a container in a container was started. */
  runtime_proven: z.boolean(),
  collateral: z.boolean(),
  /** Exponential moving average of failures, including this cycle. */
  failure_ppm: z.int().min(0).max(ONE_PPM),
  /** The provider's price in micro-USD per GPU and hour; null if unknown. */
  price_uusd: z.int().min(0).nullable(),
  /** Null if not measured. */
  bandwidth_mbit: z.int().min(0).nullable(),
  /** Platform fees that renters have paid for the executor so far; absent if the central API did not report them. */
  paid_fees_uusd: z.int().min(0).optional(),
  /** True if the provider's chat account is linked; absent if the central API did not report it. */
  chat_linked: z.boolean().optional(),
});
export type CycleEntry = z.output<typeof CycleEntry>;

export const Cycle = z.strictObject({
  number: z.int().min(0),
  entries: z.array(CycleEntry).max(MAX_EXECUTORS),
});
export type Cycle = z.output<typeof Cycle>;

export const Neuron = z.strictObject({ uid: z.int().min(0).max(MAX_UID), hotkey: Hotkey });
export type Neuron = z.output<typeof Neuron>;

/** Registered neurons; uids and hotkeys are unique. */
export const Neurons = z
  .array(Neuron)
  .max(MAX_UID + 1)
  .refine(
    (neurons) =>
      new Set(neurons.map(({ uid }) => uid)).size === neurons.length &&
      new Set(neurons.map(({ hotkey }) => hotkey)).size === neurons.length,
    'A uid or a hotkey is listed twice',
  );

const Window = z.strictObject({
  /** End of the newest cycle. */
  ends_ms: z.int().min(0),
  /** Time in which the fees of the window were paid. */
  length_ms: z.int().min(0),
});
export type Window = z.output<typeof Window>;

export const CycleSet = z.strictObject({
  epoch: z.int().min(0),
  validator: Hotkey,
  /** True if simulated GPUs earn points; only in a local marketplace. */
  embedded: z.boolean(),
  neurons: Neurons,
  /** Window of the cycles; absent in epochs of older versions. */
  window: Window.optional(),
  /** Oldest first. */
  cycles: z.array(Cycle).max(MAX_CYCLES),
});
export type CycleSet = z.output<typeof CycleSet>;

export type CycleSetHead = Omit<CycleSet, 'cycles'>;

/**
 * SHA-256 of the canonical JSON of a CycleSet, hex, computed one cycle at a time. Executors and neurons are sorted
 * first, so only the order of cycles matters. `cycles` is the first key in canonical order, so the head is hashed last.
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

    /** Call once, after the last cycle. */
    end(head: CycleSetHead): string {
      const neurons = head.neurons.toSorted((a, b) => a.uid - b.uid);
      const rest = canonicalJson({ ...head, neurons });
      return hash.update(`],${rest.slice(1)}`).digest('hex');
    },
  };
}
