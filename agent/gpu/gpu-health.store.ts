/** Queries on the health of GPUs: observed cards, cordons, Xids, and the cursor into the kernel log. */
import { z } from 'zod';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';

const CORDON_SOURCES = ['inventory', 'presence', 'xid'] as const;

/** One row of `gpu_cordons`. */
export const Cordon = z.object({
  subject: z.string(),
  source: z.enum(CORDON_SOURCES),
  reason: z.string(),
  message: z.string(),
  since_ms: z.int(),
});
export type Cordon = z.output<typeof Cordon>;

/** One row of `gpu_xids`. */
export const XidRow = z.object({
  boot_id: z.string(),
  sequence: z.int(),
  at_ms: z.int(),
  pci: z.string(),
  code: z.int(),
  pod_id: z.string().nullable(),
});
export type XidRow = z.output<typeof XidRow>;

const Card = z.object({ uuid: z.string(), pci: z.string() });
export type ObservedCard = z.output<typeof Card>;

/** `sequence`: the last record read from the kernel log; -1 before the first. */
const Cursor = z.object({ boot_id: z.string(), sequence: z.int() });
export type KernelLogCursor = z.output<typeof Cursor>;

/** Maximum number of rows: a hung card logs the same Xid repeatedly. */
const MAX_XIDS = 1_000;
const CURSOR = 'kernel_log';

export type GpuHealthStore = ReturnType<typeof createGpuHealthStore>;

export function createGpuHealthStore(database: DatabaseSync) {
  const selectCards = database.prepare('SELECT uuid, pci FROM gpu_cards ORDER BY uuid');
  const putCard = database.prepare(
    `INSERT INTO gpu_cards (uuid, pci) VALUES (:uuid, :pci)
     ON CONFLICT (uuid) DO UPDATE SET pci = excluded.pci`,
  );
  const dropCards = database.prepare('DELETE FROM gpu_cards');
  const selectCordons = database.prepare('SELECT * FROM gpu_cordons ORDER BY subject, source');
  const putCordon = database.prepare(
    `INSERT INTO gpu_cordons (subject, source, reason, message, since_ms)
     VALUES (:subject, :source, :reason, :message, :since_ms)
     ON CONFLICT (subject, source) DO UPDATE SET
       reason = excluded.reason, message = excluded.message, since_ms = excluded.since_ms`,
  );
  const dropCordon = database.prepare(
    'DELETE FROM gpu_cordons WHERE subject = :subject AND source = :source',
  );
  const dropCordons = database.prepare('DELETE FROM gpu_cordons WHERE source = :source');
  const putXid = database.prepare(
    `INSERT INTO gpu_xids (boot_id, sequence, at_ms, pci, code, pod_id)
     VALUES (:boot_id, :sequence, :at_ms, :pci, :code, :pod_id)
     ON CONFLICT (boot_id, sequence) DO NOTHING`,
  );
  const trimXids = database.prepare(
    `DELETE FROM gpu_xids WHERE rowid NOT IN
       (SELECT rowid FROM gpu_xids ORDER BY rowid DESC LIMIT ${MAX_XIDS})`,
  );
  const selectXids = database.prepare(
    'SELECT * FROM gpu_xids WHERE pci = :pci AND at_ms >= :from_ms AND at_ms <= :to_ms ORDER BY at_ms',
  );
  const getMeta = database.prepare('SELECT value FROM meta WHERE name = :name');
  const setMeta = database.prepare(
    `INSERT INTO meta (name, value) VALUES (:name, :value)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
  );

  return {
    cards: (): ObservedCard[] => selectCards.all().map((row) => Card.parse(row)),
    putCard: (card: ObservedCard): void => void putCard.run(card),
    /** Deletes findings from before the boot: cards may have been removed since. */
    forgetBoot(): void {
      dropCards.run();
      dropCordons.run({ source: 'presence' });
      dropCordons.run({ source: 'xid' });
    },
    cordons: (): Cordon[] => selectCordons.all().map((row) => Cordon.parse(row)),
    putCordon: (cordon: Cordon): void => void putCordon.run(cordon),
    dropCordon: ({ subject, source }: Pick<Cordon, 'subject' | 'source'>): void =>
      void dropCordon.run({ subject, source }),
    /** Ignores a record of the same boot and sequence that is already stored. */
    addXid(row: XidRow): void {
      putXid.run(row);
      trimXids.run();
    },
    /** Xids of the card at `pci`, oldest first; both bounds are inclusive. */
    xids: (pci: string, fromMs: number, toMs: number): XidRow[] =>
      selectXids
        .all({ pci, from_ms: Math.floor(fromMs), to_ms: Math.ceil(toMs) })
        .map((row) => XidRow.parse(row)),
    /** Null before the first read. */
    cursor(): KernelLogCursor | null {
      const value = getMeta.get({ name: CURSOR })?.['value'];
      return typeof value === 'string' ? Cursor.parse(JSON.parse(value)) : null;
    },
    setCursor: (cursor: KernelLogCursor): void =>
      void setMeta.run({ name: CURSOR, value: JSON.stringify(cursor) }),
  };
}
