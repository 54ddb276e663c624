/** Connects an SSH channel with a process or a socket, with backpressure in both directions. */
import { once } from 'node:events';
import type { Duplex, Writable } from 'node:stream';
import type { ServerChannel } from 'ssh2';
import type { ProcessClient } from '../access/exec/run-process.ts';
import type { OutputChunk } from '../containers/engine/exec.ts';

/** Counts bytes for the audit log and the idle timeout. */
export type Meter = { sent(bytes: number): void; received(bytes: number): void };

/** Adapts a channel to a process's client. `endInput`: the channel's end of input ends the process's input. */
export function channelClient(
  channel: ServerChannel,
  { meter, closed, endInput }: { meter: Meter; closed: AbortSignal; endInput: boolean },
): ProcessClient {
  return {
    pipeInput: (input) => pumpInput(channel, input, { meter, end: endInput }),
    write: (chunk) => writeChunk(channel, chunk, { meter, closed }),
    notStarted: () => void channel.stderr.write('podwright: cannot run this in the pod\r\n'),
    exited(exitCode) {
      channel.exit(exitCode);
      channel.end();
    },
  };
}

/** Copies output to the channel until it ends or `closed` aborts. */
export async function pumpOutput(
  output: AsyncIterable<OutputChunk>,
  channel: ServerChannel,
  { meter, closed }: { meter: Meter; closed: AbortSignal },
): Promise<void> {
  try {
    for await (const chunk of output) {
      if (closed.aborted) return;
      await writeChunk(channel, chunk, { meter, closed });
    }
  } catch (error) {
    if (!closed.aborted) throw error;
  }
}

/**
 * Pipes the channel to the input, with backpressure. `end`: the channel's end of input ends the input.
 */
export function pumpInput(
  channel: ServerChannel,
  input: Duplex,
  { meter, end }: { meter: Meter; end: boolean },
): void {
  channel.on('data', (chunk: Buffer) => meter.received(chunk.length));
  channel.pipe(input, { end });
}

/** Connects a channel and a socket in both directions; half-closed sockets are supported. */
export function joinSocket(
  channel: ServerChannel,
  socket: Duplex,
  { meter, closed }: { meter: Meter; closed: AbortSignal },
): void {
  pumpInput(channel, socket, { meter, end: true });
  socket.on('data', (chunk: Buffer) => meter.sent(chunk.length));
  socket.pipe(channel);
  socket.once('error', () => channel.close());
  channel.once('error', () => socket.destroy());
  channel.once('close', () => socket.destroy());
  closed.addEventListener('abort', () => socket.destroy(), { once: true });
}

async function writeChunk(
  channel: ServerChannel,
  { stream, data }: OutputChunk,
  { meter, closed }: { meter: Meter; closed: AbortSignal },
): Promise<void> {
  meter.sent(data.length);
  const to: Writable = stream === 'stderr' ? channel.stderr : channel;
  if (!to.write(data)) await once(to, 'drain', { signal: closed });
}
