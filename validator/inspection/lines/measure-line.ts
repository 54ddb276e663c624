/** Measures the line to one executor: streams of random bytes down to it and up from it, larger until one takes a while. */
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
/** A stream that has not come to its end by then is as slow as that. */
const STALLED_MS = 30_000;

/** How much is streamed: more each time until a stream takes `enoughMs`, at most `mostBytes` or for `mostMs`. */
export type LineSize = { firstBytes: number; mostBytes: number; enoughMs: number; mostMs: number };

export const FULL_LINE: LineSize = {
  ...{ firstBytes: 256 * 1024, mostBytes: 128 * 1024 * 1024, enoughMs: 1_000, mostMs: 5_000 },
};
/** For a marketplace on one machine, whose line is its own memory. */
export const SMALL_LINE: LineSize = { ...FULL_LINE, mostBytes: 2 * 1024 * 1024 };

export type LineSample =
  | {
      status: 'measured';
      /** As the executor sees it: down is to it, up from it. */
      downKbit: number;
      upKbit: number;
      /** The way on which something else arrived than was sent. */
      falseStream: 'down' | 'up' | null;
    }
  /** The agent would not. */
  | { status: 'refused'; detail: string }
  /** It could not be learnt, whoever is to blame. */
  | { status: 'not_measured'; detail: string };

export type LineDeps = {
  connect: SignedConnect;
  clock: Clock;
  random: Random;
  size: LineSize;
  /** Gives up, whereupon nothing was measured. */
  signal: AbortSignal;
};

/** Rejects only for what is our own fault. */
export async function measureLine(deps: LineDeps, executorId: string): Promise<LineSample> {
  const query = new URLSearchParams({ executor_id: executorId });
  const path = `${SPEED_TEST_PATH}?${query}`;
  try {
    const { signal } = deps;
    const socket = await deps.connect({ path, maxMessageBytes: SPEED_MESSAGE_BYTES, signal });
    const giveUp = () => socket.terminate();
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      const down = await grow(deps, socket, streamDown);
      // Who stalls one way is not asked the other: the slower one counts in any case.
      const isOver = down.isFalse || down.ms >= STALLED_MS;
      const up = isOver ? down : await grow(deps, socket, streamUp);
      const falseStream = down.isFalse ? 'down' : up.isFalse ? 'up' : null;
      return { status: 'measured', downKbit: down.kbit, upKbit: up.kbit, falseStream };
    } finally {
      signal.removeEventListener('abort', giveUp);
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

/** Streams until one has taken long enough to tell; its speed counts. */
async function grow(deps: LineDeps, socket: WebSocket, stream: Stream) {
  const { firstBytes, mostBytes, enoughMs } = deps.size;
  for (let bytes = firstBytes; ; bytes = Math.min(mostBytes, bytes * GROWTH)) {
    const done = await stream(deps, socket, bytes);
    // Bits in a millisecond.
    const kbit = Math.round((done.bytes * BITS) / Math.max(1, done.ms));
    if (done.isFalse || done.ms >= enoughMs || bytes >= mostBytes) return { ...done, kbit };
  }
}

/** Until the executor has said what it got: it cannot know before the last byte is there. */
async function streamDown(deps: LineDeps, socket: WebSocket, bytes: number): Promise<Streamed> {
  const { clock, random, size } = deps;
  const next = keystreamFrom(random.bytes(SEED_BYTES));
  const hash = createHash('sha256');
  const beganMs = clock.monotonicMs();
  const passedMs = () => clock.monotonicMs() - beganMs;
  let sent = 0;
  const outcome = await converse(socket, clock, {
    onBytes: () => false,
    async speak(say) {
      await say({ type: 'down' });
      while (sent < bytes && passedMs() < size.mostMs) {
        const part = next(Math.min(SPEED_MESSAGE_BYTES, bytes - sent));
        hash.update(part);
        sent += part.length;
        await sendMessage(socket, part);
      }
      await say({ type: 'end' });
    },
  });
  const isFalse =
    outcome !== 'stalled' && (outcome.type !== 'received' || outcome.sha256 !== hash.digest('hex'));
  return { bytes: sent, ms: passedMs(), isFalse };
}

/** Until the executor has sent all, or enough to tell. */
async function streamUp(deps: LineDeps, socket: WebSocket, bytes: number): Promise<Streamed> {
  const { clock, random, size } = deps;
  const seed = random.bytes(SEED_BYTES);
  const next = keystreamFrom(seed);
  const beganMs = clock.monotonicMs();
  let [got, lastMs, isStopped, isFalse] = [0, beganMs, false, false];
  const outcome = await converse(socket, clock, {
    onBytes(data, say) {
      got += data.length;
      isFalse ||= got > bytes || !next(data.length).equals(data);
      lastMs = clock.monotonicMs();
      if (!isStopped && lastMs - beganMs >= size.mostMs) {
        isStopped = true;
        // Its close is noticed by whoever waits for the answer.
        say({ type: 'stop' }).catch(() => undefined);
      }
      return !isFalse;
    },
    speak: (say) => say({ type: 'up', seed: Buffer.from(seed).toString('hex'), bytes }),
  });
  if (outcome === 'stalled') return { bytes: got, ms: STALLED_MS, isFalse };
  const isShort = !isStopped && got < bytes;
  return { bytes: got, ms: lastMs - beganMs, isFalse: isFalse || isShort };
}

type Say = (request: SpeedRequest) => Promise<void>;
type Talk = {
  speak(say: Say): Promise<void>;
  /** False: it is none of what was asked for. */
  onBytes(data: Buffer, say: Say): boolean;
};

/** The executor's answer, or that it did not come in time. Rejects with ApiError when the socket closes before. */
async function converse(
  socket: WebSocket,
  clock: Clock,
  { speak, onBytes }: Talk,
): Promise<SpeedResponse | 'stalled'> {
  const say: Say = (request) => sendMessage(socket, JSON.stringify(request));
  const { promise, resolve, reject } = Promise.withResolvers<SpeedResponse | 'stalled'>();
  const ended = new AbortController();
  const onMessage = (data: Buffer, isBinary: boolean) => {
    if (isBinary && onBytes(data, say)) return;
    resolve(isBinary ? UNEXPECTED_ANSWER : (parsed(data) ?? UNEXPECTED_ANSWER));
  };
  const onClose = () => reject(new ApiError('upstream_unavailable', 'The line broke'));
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
  // What cannot be said is told by the close.
  speak(say).catch(() => undefined);
  try {
    return await promise;
  } finally {
    ended.abort();
    socket.off('message', onMessage);
    socket.off('close', onClose);
  }
}

/** Stands for whatever is no answer to the question. */
const UNEXPECTED_ANSWER: SpeedResponse = { type: 'sent', bytes: 0 };

function parsed(data: Buffer): SpeedResponse | null {
  try {
    return SpeedResponse.parse(JSON.parse(data.toString()));
  } catch {
    return null;
  }
}
