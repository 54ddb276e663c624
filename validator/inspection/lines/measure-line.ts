/**
 * Measures the bandwidth to one executor with streams of random bytes in both directions. The streams grow until one
 * takes long enough.
 */
import { createHash } from 'node:crypto';
import type { WebSocket } from 'ws';
import type { SignedConnect } from '#shared/api/agent/connect.ts';
import {
  SPEED_MESSAGE_BYTES,
  SPEED_TEST_PATH,
  type SpeedRequest,
  SpeedResponse,
} from '#shared/api/agent/host-checks.ts';
import { CLOSE, sendMessage } from '#shared/http/websocket.ts';
import { keystreamFrom, SEED_BYTES } from '#shared/proof-of-work/keystream.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';

const BITS = 8;
const GROWTH = 8;
/** Timeout of a stream; a stalled stream counts with this duration. */
const STALLED_MS = 30_000;

/**
 * Stream sizes: each stream is larger than the one before until a stream takes `enoughMs`; at most `mostBytes` or
 * `mostMs`.
 */
export type LineSize = { firstBytes: number; mostBytes: number; enoughMs: number; mostMs: number };

export const FULL_LINE: LineSize = {
  firstBytes: 256 * 1024,
  mostBytes: 128 * 1024 * 1024,
  enoughMs: 1_000,
  mostMs: 5_000,
};
/** For a local marketplace, where streams pass through memory only. */
export const SMALL_LINE: LineSize = { ...FULL_LINE, mostBytes: 2 * 1024 * 1024 };

export type LineSample =
  | {
      status: 'measured';
      /** Directions as seen from the executor: down is towards the executor, up is from it. */
      downKbit: number;
      upKbit: number;
      /** Direction in which the received bytes differed from the sent bytes. */
      falseStream: 'down' | 'up' | null;
    }
  /** The agent refused the measurement. */
  | { status: 'refused'; detail: string }
  /** The measurement failed, on either side. */
  | { status: 'not_measured'; detail: string };

export type LineDeps = {
  connect: SignedConnect;
  clock: Clock;
  random: Random;
  size: LineSize;
  signal: AbortSignal;
};

/** Rejects only for errors of the validator. */
export async function measureLine(deps: LineDeps, executorId: string): Promise<LineSample> {
  const query = new URLSearchParams({ executor_id: executorId });
  const path = `${SPEED_TEST_PATH}?${query}`;
  try {
    const { signal } = deps;
    const socket = await deps.connect({ path, maxMessageBytes: SPEED_MESSAGE_BYTES, signal });
    const abort = () => socket.terminate();
    signal.addEventListener('abort', abort, { once: true });
    try {
      const down = await grow(deps, socket, streamDown);
      // After a stalled direction the other direction is skipped, because the slower direction counts in any case.
      const isDecided = down.isFalse || down.ms >= STALLED_MS;
      const up = isDecided ? down : await grow(deps, socket, streamUp);
      const falseStream = down.isFalse ? 'down' : up.isFalse ? 'up' : null;
      return { status: 'measured', downKbit: down.kbit, upKbit: up.kbit, falseStream };
    } finally {
      signal.removeEventListener('abort', abort);
      socket.close(CLOSE.normal);
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const status = error.status === CONFLICT ? 'refused' : 'not_measured';
    return { status, detail: messageOf(error) };
  }
}

const CONFLICT = 409;

type Streamed = { bytes: number; ms: number; isFalse: boolean };
type Stream = (deps: LineDeps, socket: WebSocket, bytes: number) => Promise<Streamed>;

/** Repeats the stream with growing sizes until one takes long enough. The speed of the last stream counts. */
async function grow(deps: LineDeps, socket: WebSocket, stream: Stream) {
  const { firstBytes, mostBytes, enoughMs } = deps.size;
  for (let bytes = firstBytes; ; bytes = Math.min(mostBytes, bytes * GROWTH)) {
    const done = await stream(deps, socket, bytes);
    // Bits per millisecond are kilobits per second.
    const kbit = Math.round((done.bytes * BITS) / Math.max(1, done.ms));
    if (done.isFalse || done.ms >= enoughMs || bytes >= mostBytes) return { ...done, kbit };
  }
}

/** Sends bytes until the executor confirms their hash, which cannot be computed before the last byte has arrived. */
async function streamDown(deps: LineDeps, socket: WebSocket, bytes: number): Promise<Streamed> {
  const { clock, random, size } = deps;
  const next = keystreamFrom(random.bytes(SEED_BYTES));
  const hash = createHash('sha256');
  const beganMs = clock.monotonicMs();
  const passedMs = () => clock.monotonicMs() - beganMs;
  let sent = 0;
  const outcome = await exchange(socket, clock, {
    onBytes: () => false,
    async begin(send) {
      await send({ type: 'down' });
      while (sent < bytes && passedMs() < size.mostMs) {
        const part = next(Math.min(SPEED_MESSAGE_BYTES, bytes - sent));
        hash.update(part);
        sent += part.length;
        await sendMessage(socket, part);
      }
      await send({ type: 'end' });
    },
  });
  const isFalse =
    outcome !== 'stalled' && (outcome.type !== 'received' || outcome.sha256 !== hash.digest('hex'));
  return { bytes: sent, ms: passedMs(), isFalse };
}

/** Receives bytes until the executor has sent all of them, or has sent for long enough. */
async function streamUp(deps: LineDeps, socket: WebSocket, bytes: number): Promise<Streamed> {
  const { clock, random, size } = deps;
  const seed = random.bytes(SEED_BYTES);
  const next = keystreamFrom(seed);
  const beganMs = clock.monotonicMs();
  let received = 0;
  let lastMs = beganMs;
  let isStopped = false;
  let isFalse = false;
  const outcome = await exchange(socket, clock, {
    onBytes(data, send) {
      received += data.length;
      isFalse ||= received > bytes || !next(data.length).equals(data);
      lastMs = clock.monotonicMs();
      if (!isStopped && lastMs - beganMs >= size.mostMs) {
        isStopped = true;
        // If the socket closed, the pending answer rejects.
        send({ type: 'stop' }).catch(() => undefined);
      }
      return !isFalse;
    },
    begin: (send) => send({ type: 'up', seed: Buffer.from(seed).toString('hex'), bytes }),
  });
  if (outcome === 'stalled') return { bytes: received, ms: STALLED_MS, isFalse };
  const isShort = !isStopped && received < bytes;
  return { bytes: received, ms: lastMs - beganMs, isFalse: isFalse || isShort };
}

type Send = (request: SpeedRequest) => Promise<void>;
type Exchange = {
  begin(send: Send): Promise<void>;
  /** Returns false if the bytes are not the requested ones. */
  onBytes(data: Buffer, send: Send): boolean;
};

/** Resolves with the executor's answer, or `stalled` after the timeout. Rejects with ApiError if the socket closes first. */
async function exchange(
  socket: WebSocket,
  clock: Clock,
  { begin, onBytes }: Exchange,
): Promise<SpeedResponse | 'stalled'> {
  const send: Send = (request) => sendMessage(socket, JSON.stringify(request));
  const { promise, resolve, reject } = Promise.withResolvers<SpeedResponse | 'stalled'>();
  const ended = new AbortController();
  const onMessage = (data: Buffer, isBinary: boolean) => {
    if (isBinary && onBytes(data, send)) return;
    resolve(isBinary ? UNEXPECTED_ANSWER : (parsed(data) ?? UNEXPECTED_ANSWER));
  };
  const onClose = () => reject(new ApiError('upstream_unavailable', 'The connection closed'));
  socket.on('message', onMessage);
  socket.once('close', onClose);
  clock.sleep(STALLED_MS, ended.signal).then(
    () => {
      resolve('stalled');
      socket.terminate();
    },
    () => undefined,
  );
  if (socket.readyState !== socket.OPEN) onClose();
  socket.resume();
  // If sending fails, the close rejects the answer.
  begin(send).catch(() => undefined);
  try {
    return await promise;
  } finally {
    ended.abort();
    socket.off('message', onMessage);
    socket.off('close', onClose);
  }
}

/** Result for any message that is not a valid answer. */
const UNEXPECTED_ANSWER: SpeedResponse = { type: 'sent', bytes: 0 };

function parsed(data: Buffer): SpeedResponse | null {
  try {
    return SpeedResponse.parse(JSON.parse(data.toString()));
  } catch {
    return null;
  }
}
