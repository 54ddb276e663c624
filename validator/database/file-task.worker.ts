/** Entry point of the thread for work on whole database files, which would block the event loop for seconds. */
import { findDamage } from '#shared/runtime/sqlite.ts';
import { answerThreadCalls } from '#shared/runtime/thread-calls.ts';
import { type BackupRequest, backUpFile } from './database-backup.ts';

export type FileTask = { kind: 'check'; path: string } | { kind: 'backup'; request: BackupRequest };
/** The finding of a check, null for an intact file; the path of a backup. */
export type FileAnswer = string | null;

answerThreadCalls<FileTask, FileAnswer>((task) =>
  task.kind === 'check' ? findDamage(task.path) : backUpFile(task.request),
);
