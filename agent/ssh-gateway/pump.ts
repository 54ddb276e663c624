/** Joins an SSH channel with a process or a socket: whoever is slow slows the other side down, nothing piles up. */
import { once } from 'node:events';
import type { Duplex, Writable } from 'node:stream';
import type { ServerChannel } from 'ssh2';
import type { ProcessClient } from '../access/exec/run-process.ts';
import type { OutputChunk } from '../containers/engine/exec.ts';

/** Counts what has passed, for the audit record and the idle limit. */
export type Meter = { sent(bytes: number): void; received(bytes: number): void };

/** A process's client behind a channel. `endInput`: its end of input is passed on. */
export function channelClient(
  channel: ServerChannel,
  { meter, gone, endInput }: { meter: Meter; gone: AbortSignal; endInput: boolean },
): ProcessClient {
  return {
    feed: (input) => pumpInput(channel, input, { meter, end: endInput }),
    take: (chunk) => writeChunk(channel, chunk, { meter, gone }),
    notStarted: () => void channel.stderr.write('podwright: this cannot be run in the pod now\r\n'),
    exited(exitCode) {
      channel.exit(exitCode);
      channel.end();
    },
  };
}

/** Until the output has ended or the client is gone, as `gone` tells. */
export async function pumpOutput(
  output: AsyncIterable<OutputChunk>,
  channel: ServerChannel,
  { meter, gone }: { meter: Meter; gone: AbortSignal },
): Promise<void> {
  try {
    for await (const chunk of output) {
      if (gone.aborted) return;
      await writeChunk(channel, chunk, { meter, gone });
    }
  } catch (error) {
    if (!gone.aborted) throw error;
  }
}

/**
 * What the client sends; `pipe` stops reading while the other side does not take it. `end`: its end of
 * input is passed on.
 */
export function pumpInput(
  channel: ServerChannel,
  input: Duplex,
  { meter, end }: { meter: Meter; end: boolean },
): void {
  channel.on('data', (chunk: Buffer) => meter.received(chunk.length));
  channel.pipe(input, { end });
}

/** Both ways between a channel and a socket, half-closed ends included. */
export function joinSocket(
  channel: ServerChannel,
  socket: Duplex,
  { meter, gone }: { meter: Meter; gone: AbortSignal },
): void {
  pumpInput(channel, socket, { meter, end: true });
  socket.on('data', (chunk: Buffer) => meter.sent(chunk.length));
  socket.pipe(channel);
  socket.once('error', () => channel.close());
  channel.once('error', () => socket.destroy());
  channel.once('close', () => socket.destroy());
  gone.addEventListener('abort', () => socket.destroy(), { once: true });
}

async function writeChunk(
  channel: ServerChannel,
  { stream, data }: OutputChunk,
  { meter, gone }: { meter: Meter; gone: AbortSignal },
): Promise<void> {
  meter.sent(data.length);
  const to: Writable = stream === 'stderr' ? channel.stderr : channel;
  if (!to.write(data)) await once(to, 'drain', { signal: gone });
}
