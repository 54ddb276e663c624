/** Records that a database is damaged, for everything that must stop then: writes, charges, readiness. */
import type { Log } from './log.ts';

export type DatabaseDamage = ReturnType<typeof createDatabaseDamage>;

/** `database` names kind and place, `remedy` is a sentence for the operator; both are parts of the problem's text. */
export function createDatabaseDamage({
  database,
  remedy,
  log,
}: {
  database: string;
  remedy: string;
  log: Log;
}) {
  let problem: string | null = null;
  const listeners: (() => void)[] = [];
  return {
    /** Description of the damage with the remedy; null while no damage is known. */
    problem: () => problem,

    /** Records damage until the process ends. Only the first finding is reported. */
    record(finding: string): void {
      if (problem !== null) return;
      problem = damageText(database, finding, remedy);
      log.fatal({ detail: problem }, 'the database is damaged');
      for (const listener of listeners) listener();
    },

    /** Calls `listener` when damage is recorded; at once if it is already. */
    onRecord(listener: () => void): void {
      listeners.push(listener);
      if (problem !== null) listener();
    },
  };
}

export function damageText(database: string, finding: string, remedy: string): string {
  return `the ${database} is damaged: ${finding}. ${remedy}`;
}
