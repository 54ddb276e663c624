/** Queries on the tables pods and pod_events, and the schemas of their columns. */
import { z } from 'zod';
import { DESIRED_STATES, POD_PHASES, PodSpec, PodView, ReasonCode } from '#shared/api/agent/pod.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';

/** JSON text that matches `schema`. */
export const jsonOf = (schema: z.ZodType) =>
  z.string().refine((text) => holds(text, schema), 'Corrupt');

const content = {
  generation: z.int(),
  spec_json: jsonOf(PodSpec),
  spec_hash: z.string(),
  image_id: z.string().nullable(),
  image_digest: z.string().nullable(),
};

/** A newer generation whose image is being fetched. With an image it may become the present generation. */
export const StagedGeneration = z.object({
  ...content,
  /** Consecutive failed pulls; reason and message are those of the last. */
  attempts: z.int(),
  reason: ReasonCode.nullable(),
  message: z.string(),
});
export type StagedGeneration = z.output<typeof StagedGeneration>;

/** The last generation that ran. Its container is stopped and kept. */
export const FallbackGeneration = z.object({
  ...content,
  /** Wall-clock time at which its container was stopped in favour of the present generation. */
  since_ms: z.int(),
  /** True: an SSH login to it worked, so one must work in the new generation too. */
  login_worked: z.boolean(),
});
export type FallbackGeneration = z.output<typeof FallbackGeneration>;

/** A newer generation that failed, with the reason. */
export const RefusedGeneration = z.object({
  generation: z.int(),
  spec_hash: z.string(),
  reason: ReasonCode,
  message: z.string(),
});
export type RefusedGeneration = z.output<typeof RefusedGeneration>;

function holds(text: string, schema: z.ZodType): boolean {
  try {
    return schema.safeParse(JSON.parse(text)).success;
  } catch {
    return false;
  }
}

/** One row of `pods`, column by column. */
export const PodRow = z.object({
  id: z.string(),
  desired: z.enum(DESIRED_STATES),
  /** 1: stopped by its owner; no container runs. */
  stopped: z.union([z.literal(0), z.literal(1)]),
  phase: z.enum(POD_PHASES),
  phase_since_ms: z.int(),
  generation: z.int(),
  observed_generation: z.int(),
  spec_json: jsonOf(PodSpec),
  spec_hash: z.string(),
  image_id: z.string().nullable(),
  image_digest: z.string().nullable(),
  container_id: z.string().nullable(),
  reason: ReasonCode.nullable(),
  message: z.string(),
  attempts: z.int(),
  restart_count: z.int(),
  /** 0: no container of the pod has worked yet. */
  launched: z.union([z.literal(0), z.literal(1)]),
  port_conflicts: z.int(),
  next_retry_ms: z.int().nullable(),
  reboots_requested: z.int(),
  reboots_done: z.int(),
  reboot_target: z.int(),
  reboot_from_ms: z.int(),
  /** Id of the host's boot in which the container was last started; empty before the first start. */
  boot_id: z.string(),
  last_exit_json: jsonOf(PodView.shape.last_exit).nullable(),
  conditions_json: jsonOf(PodView.shape.conditions),
  staged_json: jsonOf(StagedGeneration).nullable(),
  fallback_json: jsonOf(FallbackGeneration).nullable(),
  refused_json: jsonOf(RefusedGeneration).nullable(),
  created_ms: z.int(),
  updated_ms: z.int(),
});
export type PodRow = z.output<typeof PodRow>;

export type PodStore = ReturnType<typeof createPodStore>;

/** Events retained per pod. */
const MAX_EVENTS_PER_POD = 100;
/** Rows of removed pods retained. */
const MAX_TOMBSTONES = 1_000;

const COLUMNS = Object.keys(PodRow.shape);

export function createPodStore(database: DatabaseSync) {
  const select = database.prepare('SELECT * FROM pods WHERE id = :id');
  const selectAll = database.prepare('SELECT * FROM pods ORDER BY created_ms, id');
  const write = database.prepare(
    `INSERT INTO pods (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((name) => `:${name}`).join(', ')})
     ON CONFLICT (id) DO UPDATE SET ${COLUMNS.map((name) => `${name} = excluded.${name}`).join(', ')}`,
  );
  const countLive = database.prepare(`SELECT count(*) AS live FROM pods WHERE phase <> 'removed'`);
  const addEvent = database.prepare(
    `INSERT INTO pod_events (pod_id, at_ms, phase, reason, message)
     VALUES (:pod_id, :at_ms, :phase, :reason, :message)`,
  );
  const dropOldEvents = database.prepare(
    `DELETE FROM pod_events WHERE pod_id = :pod_id AND id <= (
       SELECT id FROM pod_events WHERE pod_id = :pod_id ORDER BY id DESC LIMIT 1 OFFSET :keep)`,
  );
  const events = database.prepare(
    'SELECT at_ms, phase, reason, message FROM pod_events WHERE pod_id = :pod_id ORDER BY id',
  );
  const dropTombstones = database.prepare(
    `DELETE FROM pods WHERE phase = 'removed' AND (phase_since_ms < :before_ms OR id IN (
       SELECT id FROM pods WHERE phase = 'removed' ORDER BY phase_since_ms DESC, id LIMIT -1 OFFSET :keep))`,
  );
  const dropOrphanEvents = database.prepare(
    'DELETE FROM pod_events WHERE pod_id NOT IN (SELECT id FROM pods)',
  );

  return {
    /** Null if there is no row. Throws ZodError if the row is corrupt. */
    get(id: string): PodRow | null {
      const row = select.get({ id });
      return row === undefined ? null : PodRow.parse(row);
    },
    isCorrupt(id: string): boolean {
      const row = select.get({ id });
      return row !== undefined && !PodRow.safeParse(row).success;
    },
    /** Oldest first. Corrupt rows are left out and their ids passed to `onCorrupt`. */
    list(onCorrupt: (id: string) => void = () => undefined): PodRow[] {
      return selectAll.all().flatMap((row) => {
        const parsed = PodRow.safeParse(row);
        if (!parsed.success) onCorrupt(String(row['id']));
        return parsed.success ? [parsed.data] : [];
      });
    },
    /** Number of pods that are not removed. */
    countLive: () => Number(countLive.get()?.['live'] ?? 0),
    /** Inserts or replaces the whole row. */
    put(row: PodRow): void {
      write.run(row);
    },
    addEvent(row: PodRow): void {
      const { id: pod_id, updated_ms: at_ms, phase, reason, message } = row;
      addEvent.run({ pod_id, at_ms, phase, reason, message });
      dropOldEvents.run({ pod_id, keep: MAX_EVENTS_PER_POD });
    },
    /** Oldest first. */
    events: (podId: string) => events.all({ pod_id: podId }),
    /** Deletes rows of pods removed before `beforeMs`, and the oldest beyond MAX_TOMBSTONES. */
    dropTombstones(beforeMs: number): void {
      dropTombstones.run({ before_ms: beforeMs, keep: MAX_TOMBSTONES });
      dropOrphanEvents.run();
    },
  };
}
