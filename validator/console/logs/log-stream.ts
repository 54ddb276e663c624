/**
 * Follows the log of one pod. After every interruption it continues after the last line that it has delivered, so that no
 * line is lost or repeated. Messages are delivered together, once per picture of the page.
 */
import { type ApiFailure, failureOf } from '../api/failure.ts';
import { refusalOf } from '../api/pod-socket.ts';
import {
  isLine,
  isRepeat,
  type LogEnd,
  type LogEntry,
  parseMessages,
  withTimes,
} from './log-lines.ts';
import type { LogStart } from './log-start.ts';

export type LogStreamState =
  | { name: 'connecting' }
  | { name: 'following' }
  /** The connection is lost; another attempt follows. */
  | { name: 'waiting'; failure: ApiFailure | null }
  /** The view has no room. `resume()` continues. */
  | { name: 'held' }
  /** The API has ended the log for ever. */
  | { name: 'ended'; reason: string }
  | { name: 'failed'; failure: ApiFailure };

export type LogStreamPorts = {
  /** Opens the socket of the log; rejects with an `ApiFailure`, or if the signal aborts before. */
  open(start: LogStart, signal: AbortSignal): Promise<WebSocket>;
  /** Calls `run` before the next picture; returns the function that cancels it. */
  soon(run: () => void): () => void;
  /** Calls `run` after the time; returns the function that cancels it. */
  after(ms: number, run: () => void): () => void;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Takes entries; returns false if the view has no room for more. */
  deliver(entries: readonly LogEntry[]): boolean;
  onState(state: LogStreamState): void;
};

export type LogStream = ReturnType<typeof createLogStream>;

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 15_000;
/** Time after which an open connection proves that the server works, so that the next pause is the first one again. */
const STEADY_MS = 2_000;
/** Silence after which a connection counts as lost: three keep-alive intervals of the API. */
const SILENCE_MS = 45_000;
/** Waiting messages above which they are delivered at once: the memory of a hidden page is bounded too. */
const MAX_WAITING_CHARS = 4 * 1024 * 1024;

/** Outcome of a connection. */
type Ending = { end: LogEnd | null; isHeld: boolean; failure: ApiFailure | null };

/** `source` is the index of the pod in a view of several pods. */
export function createLogStream(ports: LogStreamPorts, source: number, start: LogStart) {
  let position = start;
  let lastId: string | null = null;
  let lastAt = '';

  /** Delivers messages of one connection; returns how the connection must end, or null. */
  function accept(messages: readonly string[], connection: { isNew: boolean }): Ending | null {
    const parsed = parseMessages(messages, source);
    const end = parsed.find((entry) => entry.kind === 'end') ?? null;
    const entries = withTimes(
      parsed.filter((entry) => entry.kind !== 'end').filter((entry) => isNew(entry, connection)),
      lastAt,
    );
    const last = entries.findLast(isLine);
    if (last !== undefined) {
      lastId = last.id;
      lastAt = last.at;
      position = { since: last.id };
    }
    const hasRoom = entries.length === 0 || ports.deliver(entries);
    if (end !== null) return { end, isHeld: false, failure: null };
    return hasRoom ? null : { end: null, isHeld: true, failure: null };
  }

  /** The first lines of a new connection may repeat lines of the previous one. */
  function isNew(entry: LogEntry, connection: { isNew: boolean }): boolean {
    if (!connection.isNew || entry.kind !== 'line') return true;
    if (lastId !== null && isRepeat(entry.id, lastId)) return false;
    connection.isNew = false;
    return true;
  }

  /** Reads a connection until it ends. Calls `onSteady` once the connection has lasted. */
  function receive(socket: WebSocket, signal: AbortSignal, onSteady: () => void): Promise<Ending> {
    const { promise, resolve } = Promise.withResolvers<Ending>();
    const connection = { isNew: true };
    let waiting: string[] = [];
    let waitingChars = 0;
    let cancelDelivery: (() => void) | null = null;
    let cancelSilence: () => void = () => undefined;
    let cancelSteady: () => void = () => undefined;

    function deliver(): void {
      cancelDelivery?.();
      cancelDelivery = null;
      const messages = waiting;
      waiting = [];
      waitingChars = 0;
      if (messages.length === 0) return;
      listen();
      const ending = accept(messages, connection);
      if (ending !== null) finish(ending);
    }

    function listen(): void {
      cancelSilence();
      cancelSilence = ports.after(SILENCE_MS, () =>
        finish({ end: null, isHeld: false, failure: null }),
      );
    }

    function finish(ending: Ending): void {
      socket.onmessage = null;
      socket.onclose = null;
      cancelDelivery?.();
      cancelSilence();
      cancelSteady();
      signal.removeEventListener('abort', leave);
      // Browsers report an error for a socket that is closed before it is open.
      if (socket.readyState === socket.CONNECTING) socket.onopen = () => socket.close();
      else socket.close();
      resolve(ending);
    }

    const leave = () => finish({ end: null, isHeld: false, failure: null });
    signal.addEventListener('abort', leave);
    socket.onopen = () => {
      ports.onState({ name: 'following' });
      cancelSteady = ports.after(STEADY_MS, onSteady);
    };
    socket.onmessage = ({ data }: { data: unknown }) => {
      const message = String(data);
      waiting.push(message);
      waitingChars += message.length;
      if (waitingChars > MAX_WAITING_CHARS) deliver();
      else cancelDelivery ??= ports.soon(deliver);
    };
    socket.onclose = (closed) => {
      deliver();
      finish({ end: null, isHeld: false, failure: refusalOf(closed) });
    };
    listen();
    if (signal.aborted) leave();
    return promise;
  }

  async function connect(signal: AbortSignal, onSteady: () => void): Promise<Ending> {
    try {
      return await receive(await ports.open(position, signal), signal, onSteady);
    } catch (error) {
      return { end: null, isHeld: false, failure: failureOf(error) };
    }
  }

  return {
    /** Id of the last line, after which `run` continues; null before the first one. */
    lastId: () => lastId,
    /** Continues elsewhere at the next `run`: after an id, or at another start. */
    moveTo(next: LogStart | { after: string }): void {
      lastId = 'after' in next ? next.after : null;
      position = 'after' in next ? { since: next.after } : next;
    },
    /** Follows the log until the signal aborts, the view is full, or the API refuses or ends it. */
    async run(signal: AbortSignal): Promise<void> {
      let pauseMs = FIRST_PAUSE_MS;
      const onSteady = () => {
        pauseMs = FIRST_PAUSE_MS;
      };
      ports.onState({ name: 'connecting' });
      while (!signal.aborted) {
        const idBefore = lastId;
        const { end, isHeld, failure } = await connect(signal, onSteady);
        if (signal.aborted) return;
        if (isHeld) return ports.onState({ name: 'held' });
        if (isFinal(end)) return ports.onState({ name: 'ended', reason: end?.reason ?? '' });
        if (failure !== null && isRefusal(failure)) {
          return ports.onState({ name: 'failed', failure });
        }
        if (lastId !== idBefore) pauseMs = FIRST_PAUSE_MS;
        ports.onState({ name: 'waiting', failure });
        await ports.sleep(pauseMs, signal);
        pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
      }
    },
  };
}

/** After other reasons, such as a restart of the server, the log continues. */
const FINAL = ['pod_deleted', 'credential_revoked'];

function isFinal(end: LogEnd | null): boolean {
  return end !== null && FINAL.includes(end.reason);
}

/** Requests that fail again until something changes. Servers that are busy or do not answer are tried again. */
function isRefusal({ facts: { status } }: ApiFailure): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}
