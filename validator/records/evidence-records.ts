/** Cycles with their verdicts, and the signed documents of executors, for operators. */
import type {
  CyclePage,
  CyclesQuery,
  CycleVerdicts,
  EvidencePage,
  EvidenceQuery,
  SignedEvidence,
  VerdictsQuery,
} from '#shared/api/central/evidence-records.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { trustedHead } from '../evidence/chain-head.ts';
import { signedTextOf } from '../evidence/document.ts';
import { evidenceBefore, findEvidence } from '../evidence/evidence.store.ts';
import { dropProblem } from '../evidence/header.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { CycleVerdict, EvidenceStore } from '../store/tables.ts';
import { countVerdicts, cyclesBefore, entriesAfter, findCycle } from '../weights/cycle.store.ts';
import type { CycleEntry } from '../weights/cycle-set.ts';
import { pageOf } from './page.ts';

export type EvidenceRecords = ReturnType<typeof createEvidenceRecords>;

/** `trusted` contains the keys whose signatures on heads of chains are accepted. */
export function createEvidenceRecords(store: EvidenceStore, trusted: readonly TrustedHotkey[]) {
  return {
    async cycles({ before, limit }: CyclesQuery): Promise<CyclePage> {
      const { items, next } = pageOf(
        await cyclesBefore(store, before ?? Number.MAX_SAFE_INTEGER, limit + 1),
        limit,
        ({ number }) => number,
      );
      const counts = await countVerdicts(
        store,
        items.map(({ number }) => number),
      );
      const countOf = (cycle: number, verdict: CycleVerdict) =>
        counts.find((row) => row.cycle === cycle && row.verdict === verdict)?.count ?? 0;
      const cycles = items.map(({ number, ended_ms }) => ({
        number,
        ended_at: naiveUtc(ended_ms),
        passed: countOf(number, 'ok'),
        failed: countOf(number, 'failed'),
        withheld: countOf(number, 'withheld'),
      }));
      return { cycles, next };
    },

    /** Throws `not_found` for a cycle that is not stored. */
    async verdicts(number: number, query: VerdictsQuery): Promise<CycleVerdicts> {
      const cycle = await findCycle(store, number);
      if (cycle === undefined) throw notStored(`cycle ${number}`);
      const { after = '', verdict, limit } = query;
      const rows = await entriesAfter(store, { cycle: number, after, verdict }, limit + 1);
      const { items, next } = pageOf(rows, limit, ({ executor_id }) => executor_id);
      return {
        cycle: number,
        ended_at: naiveUtc(cycle.ended_ms),
        verdicts: items.map(({ entry_json }) => verdictIn(entry_json)),
        next,
      };
    },

    /** Lists the documents of an executor; no documents for an unknown executor. */
    async documents(executorId: string, query: EvidenceQuery): Promise<EvidencePage> {
      const { before = Number.MAX_SAFE_INTEGER, limit } = query;
      const rows = await evidenceBefore(store, executorId, before, limit + 1);
      const head = await trustedHead(store, executorId, trusted);
      const { items, next } = pageOf(rows, limit, ({ seq }) => seq);
      return {
        executor_id: executorId,
        first_seq: head?.first_seq ?? null,
        last_seq: head?.last_seq ?? null,
        documents: items.map(({ id, seq, finished_ms, verdict }) => ({
          id,
          seq,
          verdict,
          finished_at: naiveUtc(finished_ms),
        })),
        next,
      };
    },

    /** Returns a document with its signature, as stored. Throws `not_found`. */
    async evidence(id: string): Promise<SignedEvidence> {
      const row = await findEvidence(store, id);
      if (row === undefined) throw notStored(`evidence ${id}`);
      const { executor_id, seq, verdict, document, signature } = row;
      const head = document === null ? await trustedHead(store, executor_id, trusted) : null;
      const droppedMs =
        document === null && dropProblem(row, head, trusted) === null ? head?.dropped_ms : null;
      return {
        id,
        executor_id,
        seq,
        verdict,
        document,
        signature,
        ...signedTextOf(row),
        dropped_at: droppedMs == null ? null : naiveUtc(droppedMs),
        finished_at: naiveUtc(row.finished_ms),
      };
    },
  };
}

function verdictIn(entryJson: string): CycleVerdicts['verdicts'][number] {
  // `cycle.service.ts` wrote the text from a CycleEntry.
  const entry = JSON.parse(entryJson) as CycleEntry;
  const { executor_id, hotkey, evidence_id, verdict, gpu_model, gpu_count } = entry;
  const { rented, simulated, uptime_minutes, failure_ppm } = entry;
  return {
    executor_id,
    hotkey,
    evidence_id,
    verdict,
    gpu_model,
    gpu_count,
    rented,
    simulated,
    uptime_minutes,
    failure_ppm,
  };
}

/** Returns the 404 for a record that does not exist, or that was deleted because of its age. */
export function notStored(what: string): ApiError {
  return new ApiError('not_found', `This validator has no ${what}`, {
    hint: 'It may have been deleted because of its age. List the stored records.',
  });
}
