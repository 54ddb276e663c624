/** Calls to a worker thread that runs them in order, for work that would block the event loop. */
import { parentPort, Worker } from 'node:worker_threads';
import { messageOf } from './errors.ts';

export type ThreadCalls<Request, Answer> = {
  /** Rejects with the message of an error thrown in the thread, or if the thread ends. */
  call(request: Request): Promise<Answer>;
  /** Number of pending calls. */
  waiting(): number;
  /** Ends the thread and rejects pending calls. */
  close(): Promise<void>;
};

export type ThreadCall<Request> = { id: number; request: Request };
export type ThreadAnswer<Answer> = { id: number } & ({ answer: Answer } | { error: string });

/**
 * Starts a thread that runs `module`, which must respond to every ThreadCall with a ThreadAnswer. Without pending
 * calls, the thread does not prevent the process from exiting.
 */
export function createThreadCalls<Request, Answer>(
  module: URL,
  workerData: unknown,
): ThreadCalls<Request, Answer> {
  const worker = new Worker(module, { workerData });
  const waiting = new Map<number, PromiseWithResolvers<Answer>>();
  let last = 0;
  let ended: Error | null = null;

  function end(error: Error): void {
    ended ??= error;
    for (const call of waiting.values()) call.reject(ended);
    waiting.clear();
  }

  worker.unref();
  worker.on('message', (message: ThreadAnswer<Answer>) => {
    const call = waiting.get(message.id);
    waiting.delete(message.id);
    if (waiting.size === 0) worker.unref();
    if ('answer' in message) call?.resolve(message.answer);
    else call?.reject(new Error(message.error));
  });
  worker.on('error', end);
  worker.on('exit', (code) => end(new Error(`the thread ended with ${code}`)));

  return {
    call(request) {
      if (ended !== null) return Promise.reject(ended);
      const call = Promise.withResolvers<Answer>();
      last += 1;
      waiting.set(last, call);
      worker.ref();
      worker.postMessage({ id: last, request } satisfies ThreadCall<Request>);
      return call.promise;
    },
    waiting: () => waiting.size,
    async close() {
      await worker.terminate();
    },
  };
}

/** Runs in the thread: responds to each call with the result of `work`. */
export function answerThreadCalls<Request, Answer>(
  work: (request: Request) => Answer | Promise<Answer>,
): void {
  const port = parentPort;
  port?.on('message', async ({ id, request }: ThreadCall<Request>) => {
    const answered: ThreadAnswer<Answer> = await Promise.try(work, request).then(
      (answer) => ({ id, answer }),
      (error: unknown) => ({ id, error: messageOf(error) }),
    );
    port.postMessage(answered);
  });
}
