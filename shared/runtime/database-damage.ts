/**
 * Records that a database is damaged or that its file was replaced, for everything that must stop then: writes, charges,
 * readiness.
 */
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

  function end(text: string, message: string): void {
    if (problem !== null) return;
    problem = text;
    log.fatal({ detail: problem }, message);
    for (const listener of listeners) listener();
  }

  return {
    /** Description of the problem with the remedy; null while none is known. */
    problem: () => problem,

    /** Records damage until the process ends. Only the first finding is reported. */
    record(finding: string): void {
      end(damageText(database, finding, remedy), 'the database is damaged');
    },

    /** Records, until the process ends, that another file or none is at the path of the database. */
    recordReplaced(state: 'moved' | 'replaced'): void {
      end(
        `the file of the ${database} was ${state} while this process uses it. ${REPLACED_REMEDY}`,
        'the file of the database was moved or replaced',
      );
    },

    /** Calls `listener` when a problem is recorded; at once if it is already. */
    onRecord(listener: () => void): void {
      listeners.push(listener);
      if (problem !== null) listener();
    },
  };
}

const REPLACED_REMEDY =
  'Stop the process, put the file that it used back to this path, with the files -wal and -shm beside it, and start the process again';

export function damageText(database: string, finding: string, remedy: string): string {
  return `the ${database} is damaged: ${finding}. ${remedy}`;
}
