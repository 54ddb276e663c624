/** Closes cycles: equal slices of time with one entry per executor that was inspected in them. */
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { parseDocument } from '../evidence/document.ts';
import { decisiveEvidence, findEvidence, firstEvidenceTime } from '../evidence/evidence.store.ts';
import type { CycleEntriesTable, EvidenceRow, EvidenceStore } from '../store/tables.ts';
import { deleteCyclesBefore, insertCycle, lastCycle } from './cycle.store.ts';
import { cycleEntryOf, historyOf } from './cycle-entry.ts';
import type { WeightPolicy } from './weight-policy.ts';

/** Wait after the end of a slice for evidence that is still being written. */
const GRACE_MS = 5_000;
/** Maximum number of cycles closed per pass; the next pass continues. */
const MAX_CYCLES_AT_ONCE = 100;

export type Cycles = ReturnType<typeof createCycles>;

export type CyclesOptions = {
  store: EvidenceStore;
  clock: Clock;
  log: Log;
  policy: WeightPolicy;
  /** Length of a cycle in milliseconds. */
  cycleMs: number;
};

export function createCycles({ store, clock, log, policy, cycleMs }: CyclesOptions) {
  async function rowOf(
    cycle: number,
    lengthMs: number,
    evidence: EvidenceRow,
  ): Promise<CycleEntriesTable | null> {
    const read = parseDocument(evidence);
    if ('problem' in read) {
      log.error({ evidence: evidence.id, problem: read.problem }, 'evidence document is damaged');
      return null;
    }
    const { verdict, executor_id: executorId } = read.document;
    const past = await historyOf(store, { executorId, cycle, verdict, lengthMs }, policy);
    const entry = cycleEntryOf(read.document, evidence.id, past);
    if (entry === null) return null;
    return {
      cycle,
      executor_id: executorId,
      verdict,
      length_ms: lengthMs,
      failure_ppm: past.failurePpm,
      entry_json: canonicalJson(entry),
    };
  }

  async function close({ number, startMs, endMs }: Slice): Promise<void> {
    const entries: CycleEntriesTable[] = [];
    const breath = createEventLoopYield(clock);
    for (const id of await decisiveEvidence(store, startMs, endMs)) {
      // Loads one document at a time, because the documents of a large market do not fit in memory.
      const evidence = await findEvidence(store, id);
      const row = evidence === undefined ? null : await rowOf(number, endMs - startMs, evidence);
      if (row !== null) entries.push(row);
      await breath();
    }
    await store
      .transaction()
      .execute((tx) => insertCycle(tx, { number, ended_ms: endMs }, entries));
  }

  /** Next ended slice that contains evidence; null if there is none. */
  async function nextSlice(): Promise<Slice | null> {
    const last = await lastCycle(store);
    const fromMs = last?.ended_ms ?? 0;
    const untilMs = sliceStart(clock.now() - GRACE_MS);
    const firstMs = await firstEvidenceTime(store, fromMs, untilMs);
    if (firstMs === null) return null;
    // If the length of cycles changed, the last cycle may end inside this slice.
    const startMs = Math.max(fromMs, sliceStart(firstMs));
    return { number: (last?.number ?? 0) + 1, startMs, endMs: sliceStart(firstMs) + cycleMs };
  }

  const sliceStart = (ms: number): number => Math.floor(ms / cycleMs) * cycleMs;

  return {
    /** Closes every ended slice that contains evidence, and skips other slices. Returns the number of closed cycles. */
    async closeEnded(): Promise<number> {
      for (let closed = 0; closed < MAX_CYCLES_AT_ONCE; closed += 1) {
        const slice = await nextSlice();
        if (slice === null) return closed;
        await close(slice);
      }
      return MAX_CYCLES_AT_ONCE;
    },

    deleteBefore: (beforeMs: number) => deleteCyclesBefore(store, beforeMs),
  };
}

/** Cycles are numbered from 1 without gaps. */
type Slice = { number: number; startMs: number; endMs: number };
