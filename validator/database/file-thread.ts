/** Runs work on whole database files in a thread. */
import { createThreadCalls } from '#shared/runtime/thread-calls.ts';
import type { FileAnswer, FileTask } from './file-task.worker.ts';

/**
 * Rejects when `signal` aborts; the thread then ends. Every call starts a separate thread, which ends with the call.
 */
export async function inFileThread(task: FileTask, signal?: AbortSignal): Promise<FileAnswer> {
  signal?.throwIfAborted();
  const thread = createThreadCalls<FileTask, FileAnswer>(
    new URL('./file-task.worker.ts', import.meta.url),
    null,
  );
  const close = () => void thread.close();
  signal?.addEventListener('abort', close, { once: true });
  try {
    return await thread.call(task);
  } finally {
    signal?.removeEventListener('abort', close);
    // An aborted thread ends after its present statement, which may take minutes.
    if (signal?.aborted === true) close();
    else await thread.close();
  }
}
