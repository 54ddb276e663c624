/**
 * Entry point of the thread that audits the ledger. On the main thread, the queries would block the event loop for
 * seconds.
 */
import { answerThreadCalls } from '#shared/runtime/thread-calls.ts';
import type { CentralPlace } from '../../platform/central-home.ts';
import { readCentralDatabase } from '../../platform/database/database.ts';
import { auditLedger } from './audit.service.ts';

answerThreadCalls((place: CentralPlace) => readCentralDatabase(place, auditLedger));
