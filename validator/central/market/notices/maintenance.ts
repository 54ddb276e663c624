/** Announced maintenance, for who says what a node's silence meant (marketplace reference 1.7, 2.3). */
import type { Db } from '../../platform/database/tables.ts';
import { noticeEndMs } from './notice.rules.ts';
import { findMaintenance } from './notice.store.ts';

/** From then until just before `toMs`. */
export type Window = { fromMs: number; toMs: number };

/** The announced maintenance of the node that `atMs` lies in, whether or not it was noted as begun; null: none. */
export async function maintenanceAt(
  db: Db,
  executorId: string,
  atMs: number,
): Promise<Window | null> {
  const notice = await findMaintenance(db, executorId, atMs);
  if (notice === undefined) return null;
  const toMs = noticeEndMs(notice);
  return atMs < toMs ? { fromMs: notice.start_at, toMs } : null;
}
