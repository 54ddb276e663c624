/**
 * Checks a repository for damage during a backup: a backup reuses what earlier backups stored, so damage of the storage
 * would also be in the new backup.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { OperationFailure } from './operation.state.ts';
import type { Restic, ResticSession } from './restic.ts';

/** Data of the repository that each backup reads, selected at random, in bytes. */
const SAMPLE_BYTES = 128 * 1024 * 1024;
/** Time for which a finished backup waits for the check. */
const LATE_MS = 2 * 60_000;
/** Matches errors about a pack file. Backups do not rewrite packs, so such an error means damage. */
const ABOUT_PACK = /\bpack\b/i;

export type DamageCheck = {
  /** Resolves with the damage as a sentence, or null if none was found. Ends the check. */
  found(): Promise<string | null>;
  /** Ends the check without a result. */
  stop(): Promise<void>;
};

/** Starts the check, which runs while the backup runs. */
export function startDamageCheck(
  session: ResticSession,
  { restic, clock }: { restic: Pick<Restic, 'check'>; clock: Clock },
): DamageCheck {
  const over = new AbortController();
  let isStopped = false;
  const signal = AbortSignal.any([session.signal, over.signal]);
  const quiet = { ...session, signal, appendLog: () => undefined, meet: () => undefined };

  async function look(bytes: number): Promise<string | null> {
    try {
      await restic.check(quiet, bytes);
      return null;
    } catch (error) {
      const isDamage = error instanceof OperationFailure && error.code === 'RepositoryCorrupt';
      if (isDamage) return error.message;
      // The backup itself reports other faults of the storage.
      if (!isStopped) session.appendLog('The stored backups could not be checked');
      return null;
    }
  }

  const first = look(SAMPLE_BYTES);
  return {
    async found() {
      const late = clock.sleep(LATE_MS, over.signal).then(
        () => over.abort(),
        () => undefined,
      );
      let damage = await first;
      // A check that began before the backup ended may report the backup's newest parts as missing. Therefore checks
      // again.
      if (damage !== null && !ABOUT_PACK.test(damage)) damage = await look(0);
      over.abort();
      await late;
      return damage;
    },
    async stop() {
      isStopped = true;
      over.abort();
      await first;
    },
  };
}
