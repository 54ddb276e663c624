/** Takes and gives the streams by which a validator measures the line, one test at a time. */
import { createHash, type Hash } from 'node:crypto';
import type { WebSocket } from 'ws';
import {
  MAX_SPEED_TEST_BYTES,
  MAX_SPEED_TEST_MS,
  SPEED_MESSAGE_BYTES,
  SpeedRequest,
  type SpeedResponse,
} from '#shared/api/agent/host-checks.ts';
import { CLOSE, sendMessage } from '#shared/http/websocket.ts';
import { keystreamFrom } from '#shared/proof-of-work/keystream.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';

export type SpeedTests = ReturnType<typeof createSpeedTests>;

export type SpeedTestOptions = {
  clock: Clock;
  executorId: string;
  /** Rented hosts are never disturbed (validator reference, decision 7). */
  isRented(): boolean;
};

export function createSpeedTests({ clock, executorId, isRented }: SpeedTestOptions) {
  let isBusy = false;

  return {
    /** The place of one test until `leave`. Throws 409 beside a pod or another test. */
    reserve(askedExecutorId: string): { leave(): void } {
      if (askedExecutorId !== executorId) {
        throw new ApiError('bad_request', 'The test is for another executor');
      }
      if (isRented()) throw new ApiError('conflict', 'A pod is on this host: its line is its own');
      if (isBusy) throw new ApiError('conflict', 'Another test of the line is under way');
      isBusy = true;
      return {
        leave: () => {
          isBusy = false;
        },
      };
    },

    /** Takes a paused socket; resolves when it has closed, which it does in two minutes at the latest. */
    async serve(socket: WebSocket, stopping: AbortSignal): Promise<void> {
      const ended = new AbortController();
      clock.sleep(MAX_SPEED_TEST_MS, AbortSignal.any([stopping, ended.signal])).then(
        () => socket.terminate(),
        () => socket.close(CLOSE.goingAway),
      );
      const streams = createStreams(socket, isRented);
      socket.on('message', (data: Buffer, isBinary: boolean) => {
        const isTaken = isBinary ? streams.take(data) : streams.obey(data.toString());
        if (!isTaken) socket.close(CLOSE.invalid);
      });
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      socket.resume();
      await closed;
      ended.abort();
    },
  };
}

type Receiving = { kind: 'receiving'; hash: Hash };
type Sending = { kind: 'sending'; isStopped: boolean };

/** The streams of one test, one after the other. Both answer whether what came was in its place. */
function createStreams(socket: WebSocket, isRented: () => boolean) {
  let current: Receiving | Sending | null = null;
  let left = MAX_SPEED_TEST_BYTES;

  const answer = (text: SpeedResponse) => sendMessage(socket, JSON.stringify(text));
  // Its close tells whoever waits for the answer.
  const unheard = () => undefined;

  async function give(stream: Sending, seed: string, bytes: number): Promise<void> {
    const next = keystreamFrom(Buffer.from(seed, 'hex'));
    let sent = 0;
    while (sent < bytes && !stream.isStopped) {
      const part = next(Math.min(SPEED_MESSAGE_BYTES, bytes - sent));
      await sendMessage(socket, part);
      sent += part.length;
    }
    current = null;
    await answer({ type: 'sent', bytes: sent });
  }

  function begin(request: SpeedRequest & { type: 'down' | 'up' }): boolean {
    if (current !== null || isRented()) return false;
    if (request.type === 'down') {
      current = { kind: 'receiving', hash: createHash('sha256') };
      return true;
    }
    left -= request.bytes;
    if (left < 0) return false;
    current = { kind: 'sending', isStopped: false };
    give(current, request.seed, request.bytes).catch(unheard);
    return true;
  }

  return {
    take(data: Buffer): boolean {
      left -= data.length;
      if (current?.kind !== 'receiving' || left < 0) return false;
      current.hash.update(data);
      return true;
    },
    obey(text: string): boolean {
      const request = parsed(text);
      if (request === null) return false;
      if (request.type === 'down' || request.type === 'up') return begin(request);
      if (request.type === 'stop') {
        // One that has just ended has crossed with it.
        if (current?.kind === 'sending') current.isStopped = true;
        return current?.kind !== 'receiving';
      }
      if (current?.kind !== 'receiving') return false;
      const sha256 = current.hash.digest('hex');
      current = null;
      answer({ type: 'received', sha256 }).catch(unheard);
      return true;
    },
  };
}

function parsed(text: string): SpeedRequest | null {
  try {
    return SpeedRequest.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
