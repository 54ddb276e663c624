/** Audits the ledger of a database in a thread, on a snapshot, while the central API writes to it. */
import { createThreadCalls } from '#shared/runtime/thread-calls.ts';
import type { CentralPlace } from '../../platform/central-home.ts';
import type { LedgerAudit } from '../../platform/ports.ts';

/** Rejects when `signal` aborts. The thread then ends. */
export async function auditInThread(
  place: CentralPlace,
  signal: AbortSignal,
): Promise<LedgerAudit> {
  const thread = createThreadCalls<CentralPlace, LedgerAudit>(
    new URL('./ledger-audit.worker.ts', import.meta.url),
    null,
  );
  const close = () => void thread.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    return await thread.call(place);
  } finally {
    signal.removeEventListener('abort', close);
    await thread.close();
  }
}
