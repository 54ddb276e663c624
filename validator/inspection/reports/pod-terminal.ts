/** Runs a command in a pod through the terminal of its agent, for a renter who allows it. */
import type { WebSocket } from 'ws';
import type { SignedConnect } from '#shared/api/agent/connect.ts';
import { MAX_TERMINAL_MESSAGE_BYTES } from '#shared/api/agent/terminal.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';

/** Resolves with what the command prints. Rejects if the pod cannot be entered or does not answer in time. */
export type RunInPod = (
  executor: ExecutorToCheck,
  podId: string,
  command: string,
) => Promise<string>;

const COMMAND_MS = 30_000;
const MAX_OUTPUT_CHARS = 65_536;
const MARK_BYTES = 8;

export function createRunInPod({
  connectTo,
  clock,
  random,
}: {
  connectTo(executor: ExecutorToCheck): SignedConnect;
  clock: Clock;
  random: Random;
}): RunInPod {
  return async (executor, podId, command) => {
    const signal = clock.deadline(COMMAND_MS);
    const socket = await connectTo(executor)({
      // Wide, so that the terminal does not break lines.
      path: `/v1/pods/${podId}/exec?cols=1000&rows=50&term=dumb`,
      maxMessageBytes: MAX_TERMINAL_MESSAGE_BYTES,
      signal,
    });
    try {
      return await outputOf(socket, command, { mark: randomToken(random, MARK_BYTES), signal });
    } finally {
      socket.terminate();
    }
  };
}

/** The terminal echoes the input, in which the marks are divided into two arguments. */
function outputOf(
  socket: WebSocket,
  command: string,
  { mark, signal }: { mark: string; signal: AbortSignal },
): Promise<string> {
  const line = (name: string) => `printf '%s-%s\\n' '${name}' '${mark}'`;
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let screen = '';
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    if (isBinary) screen += data.toString('utf8');
    const output = new RegExp(`begin-${mark}\\r?\\n([^]*?)end-${mark}`).exec(screen)?.[1];
    if (output !== undefined) resolve(output.replaceAll('\r', ''));
    else if (screen.length > MAX_OUTPUT_CHARS) reject(new Error('the output is too long'));
  });
  socket.on('error', reject);
  socket.once('close', () => reject(new Error('the terminal was closed')));
  signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  socket.resume();
  socket.send(Buffer.from(`${line('begin')}; ${command}; ${line('end')}\n`));
  return promise;
}
