/** Receives and sends the streams by which a validator measures the network speed, one test at a time. */
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
  /** True if a pod is on this host. Rented hosts are not tested, so that tests do not disturb pods. */
  isRented(): boolean;
};

export function createSpeedTests({ clock, executorId, isRented }: SpeedTestOptions) {
  let isBusy = false;

  return {
    /** Reserves the service until `release`. Throws 409 if rented or during another test. */
    reserve(requestedExecutorId: string): { release(): void } {
      if (requestedExecutorId !== executorId) {
        throw new ApiError('bad_request', 'The test is for another executor');
      }
      if (isRented())
        throw new ApiError('conflict', 'A pod is on this host: its network is not tested');
      if (isBusy) throw new ApiError('conflict', 'Another speed test is in progress');
      isBusy = true;
      return {
        release: () => {
          isBusy = false;
        },
      };
    },

    /** Serves a paused socket until it closes, at most two minutes. */
    async serve(socket: WebSocket, stopping: AbortSignal): Promise<void> {
      const ended = new AbortController();
      clock.sleep(MAX_SPEED_TEST_MS, AbortSignal.any([stopping, ended.signal])).then(
        () => socket.terminate(),
        () => socket.close(CLOSE.goingAway),
      );
      const streams = createStreams(socket, isRented);
      socket.on('message', (data: Buffer, isBinary: boolean) => {
        const isValid = isBinary ? streams.receive(data) : streams.handle(data.toString());
        if (!isValid) socket.close(CLOSE.invalid);
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

/** The streams of one test, one after the other. `receive` and `handle` return false for an unexpected message. */
function createStreams(socket: WebSocket, isRented: () => boolean) {
  let current: Receiving | Sending | null = null;
  let bytesLeft = MAX_SPEED_TEST_BYTES;

  const answer = (text: SpeedResponse) => sendMessage(socket, JSON.stringify(text));
  // The peer notices a failed send by the close of the socket.
  const ignore = () => undefined;

  async function sendStream(stream: Sending, seed: string, bytes: number): Promise<void> {
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
    bytesLeft -= request.bytes;
    if (bytesLeft < 0) return false;
    current = { kind: 'sending', isStopped: false };
    sendStream(current, request.seed, request.bytes).catch(ignore);
    return true;
  }

  return {
    receive(data: Buffer): boolean {
      bytesLeft -= data.length;
      if (current?.kind !== 'receiving' || bytesLeft < 0) return false;
      current.hash.update(data);
      return true;
    },
    handle(text: string): boolean {
      const request = parsed(text);
      if (request === null) return false;
      if (request.type === 'down' || request.type === 'up') return begin(request);
      if (request.type === 'stop') {
        // The stream may already have ended when the request arrives.
        if (current?.kind === 'sending') current.isStopped = true;
        return current?.kind !== 'receiving';
      }
      if (current?.kind !== 'receiving') return false;
      const sha256 = current.hash.digest('hex');
      current = null;
      answer({ type: 'received', sha256 }).catch(ignore);
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
