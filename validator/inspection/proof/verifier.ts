/** Verifies rows and walks in a thread of its own, one after the other; it begins with the first proof. */
import { createThreadCalls, type ThreadCalls } from '#shared/runtime/thread-calls.ts';
import type { RowFault, RowsTask, Verified, VerifyTask, WalkTask } from './verify.tasks.ts';

export type Verifier = ReturnType<typeof createVerifier>;

export function createVerifier() {
  let calls: ThreadCalls<VerifyTask, Verified> | null = null;

  function ask(task: VerifyTask): Promise<Verified> {
    calls ??= createThreadCalls(new URL('./verify.worker.ts', import.meta.url), null);
    return calls.call(task);
  }

  return {
    /** The first fault among opened rows; null when all are as they should be. */
    async rows(task: Omit<RowsTask, 'kind'>): Promise<RowFault | null> {
      const verified = await ask({ kind: 'rows', ...task });
      return 'fault' in verified ? verified.fault : unexpectedAnswer();
    },
    /** Where a walk ends, hex. */
    async walk(task: Omit<WalkTask, 'kind'>): Promise<string> {
      const verified = await ask({ kind: 'walk', ...task });
      return 'digest' in verified ? verified.digest : unexpectedAnswer();
    },
    close: async () => calls?.close(),
  };
}

function unexpectedAnswer(): never {
  throw new Error('the thread verified something else');
}
