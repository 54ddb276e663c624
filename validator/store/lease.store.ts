/** Leases on work that one of several processes does for all of them. */

import type { Ledger } from './ledger.tables.ts';
import { isShared } from './ledger.ts';

/** Takes the lease, or keeps it, unless another process holds it; tells whether it is ours until then. */
export async function takeLease(
  ledger: Ledger,
  { name, holder, untilMs }: { name: string; holder: string; untilMs: number },
  nowMs: number,
): Promise<boolean> {
  // Of a file there is one process, and what it was before does not count.
  if (!isShared(ledger)) return true;
  const own = { holder, until_ms: untilMs };
  const { numInsertedOrUpdatedRows: count = 0n } = await ledger
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

/** Gives it up, where it is still ours. */
export async function dropLease(
  ledger: Ledger,
  { name, holder }: { name: string; holder: string },
): Promise<void> {
  await ledger.deleteFrom('leases').where('name', '=', name).where('holder', '=', holder).execute();
}
