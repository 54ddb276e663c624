/** Verifies rows and fills sequentially in a thread, which starts with the first proof. */
import { createThreadCalls, type ThreadCalls } from '#shared/runtime/thread-calls.ts';
import type { FillTask, RowFault, RowsTask, Verified, VerifyTask } from './verify.tasks.ts';
import type { FillFault } from './verify-fill.ts';

export type Verifier = ReturnType<typeof createVerifier>;

export function createVerifier() {
  let calls: ThreadCalls<VerifyTask, Verified> | null = null;

  function call(task: VerifyTask): Promise<Verified> {
    calls ??= createThreadCalls(new URL('./verify.worker.ts', import.meta.url), null);
    return calls.call(task);
  }

  return {
    /** First fault among the opened rows; null if all are correct. */
    async rows(task: Omit<RowsTask, 'kind'>): Promise<RowFault | null> {
      const verified = await call({ kind: 'rows', ...task });
      return 'rowFault' in verified ? verified.rowFault : unexpectedAnswer();
    },
    /** First fault of a fill; null if all chosen blocks and steps are correct. */
    async fill(task: Omit<FillTask, 'kind'>): Promise<FillFault | null> {
      const verified = await call({ kind: 'fill', ...task });
      return 'fillFault' in verified ? verified.fillFault : unexpectedAnswer();
    },
    close: async () => calls?.close(),
  };
}

function unexpectedAnswer(): never {
  throw new Error('the verifier thread returned an unexpected answer');
}
