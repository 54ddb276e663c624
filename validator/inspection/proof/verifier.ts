/** Verifies rows and walks sequentially in a thread, which starts with the first proof. */
import { createThreadCalls, type ThreadCalls } from '#shared/runtime/thread-calls.ts';
import type { RowFault, RowsTask, Verified, VerifyTask, WalkTask } from './verify.tasks.ts';

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
      return 'fault' in verified ? verified.fault : unexpectedAnswer();
    },
    /** Digest at the end of a walk, hex. */
    async walk(task: Omit<WalkTask, 'kind'>): Promise<string> {
      const verified = await call({ kind: 'walk', ...task });
      return 'digest' in verified ? verified.digest : unexpectedAnswer();
    },
    close: async () => calls?.close(),
  };
}

function unexpectedAnswer(): never {
  throw new Error('the verifier thread returned an unexpected answer');
}
