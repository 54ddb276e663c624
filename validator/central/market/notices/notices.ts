/** Composes notice periods: the service for the provider portal, and the work at their start and end. */
import type { MailDeps } from '../../delivery/delivery.ts';
import { createNotices, maintenanceAt } from './notice.service.ts';
import { type NoticeDueDeps, noticeDueHandlers } from './notice-due-handlers.ts';

export function createNoticeParts(
  { ports, mails, wakeMail }: MailDeps,
  { wake, lastBackup }: Pick<NoticeDueDeps, 'wake' | 'lastBackup'>,
) {
  const { db, clock, random } = ports;
  const deps = { db, clock, random, mails, wakeMail };
  return {
    dueHandlers: noticeDueHandlers({ ...deps, wake, lastBackup }),

    /** Service for the provider portal. */
    portal: createNotices(deps),

    /** Returns true if maintenance of the node is announced for that time. */
    inMaintenance: async (executorId: string, atMs: number) =>
      (await maintenanceAt(db, executorId, atMs)) !== null,
  };
}
