/** One thread that answers calls in their order, for work that would hold up the event loop. */
import { parentPort, Worker } from 'node:worker_threads';
import { messageOf } from './errors.ts';

export type ThreadCalls<Request, Answer> = {
  /** Rejects with what the work threw, as text, or when the thread ended. */
  call(request: Request): Promise<Answer>;
  /** Calls that are not answered yet. */
  waiting(): number;
  /** Ends the thread; what waits is rejected. */
  close(): Promise<void>;
};

export type ThreadCall<Request> = { id: number; request: Request };
export type ThreadAnswer<Answer> = { id: number } & ({ answer: Answer } | { error: string });

/**
 * The thread runs `module`, which answers every ThreadCall with a ThreadAnswer. It starts at once and keeps no process
 * from ending while nothing waits.
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

/** The thread's side: answers each call with what `work` makes of it. */
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
