/** Leases on work that one of several validator processes does on behalf of all. */
import { isShared } from './evidence-store.ts';
import type { EvidenceStore } from './tables.ts';

/** Acquires or extends a lease. Returns false if another process holds it. */
export async function acquireLease(
  store: EvidenceStore,
  { name, holder, untilMs }: { name: string; holder: string; untilMs: number },
  nowMs: number,
): Promise<boolean> {
  // Only one process uses a file, so a lease of an earlier process does not count.
  if (!isShared(store)) return true;
  const own = { holder, until_ms: untilMs };
  const { numInsertedOrUpdatedRows: count = 0n } = await store
    .insertInto('leases')
    .values({ name, ...own })
    .onConflict((conflict) =>
      conflict
        .column('name')
        .doUpdateSet(own)
        .where((eb) =>
          eb.or([eb('leases.holder', '=', holder), eb('leases.until_ms', '<', nowMs)]),
        ),
    )
    .executeTakeFirstOrThrow();
  return count > 0n;
}

/** Releases a lease if this process still holds it. */
export async function releaseLease(
  store: EvidenceStore,
  { name, holder }: { name: string; holder: string },
): Promise<void> {
  await store.deleteFrom('leases').where('name', '=', name).where('holder', '=', holder).execute();
}
