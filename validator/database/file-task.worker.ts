/** Entry point of the thread for work on whole database files, which would block the event loop for seconds. */
import { findAnyDamage, findDamage } from '#shared/runtime/sqlite.ts';
import { answerThreadCalls } from '#shared/runtime/thread-calls.ts';
import { type BackupRequest, backUpFile } from './database-backup.ts';

/** `check-all` also reads the indexes. */
export type FileTask =
  | { kind: 'check' | 'check-all'; path: string }
  | { kind: 'backup'; request: BackupRequest };
/** The finding of a check, null for an intact file; the path of a backup. */
export type FileAnswer = string | null;

answerThreadCalls<FileTask, FileAnswer>((task) => {
  if (task.kind === 'backup') return backUpFile(task.request);
  return task.kind === 'check' ? findDamage(task.path) : findAnyDamage(task.path);
});
