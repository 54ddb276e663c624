/** A shell in a pod over a WebSocket: input, output, size, and how it ends. */
import { type ApiFailure, failureOf } from '../api/failure.ts';
import { refusalOf } from '../api/pod-socket.ts';

export type TerminalSize = { cols: number; rows: number };

export type TerminalState =
  | { name: 'connecting' }
  | { name: 'open' }
  /** The shell has ended; another one can be opened. */
  | { name: 'ended'; text: string }
  | { name: 'failed'; failure: ApiFailure };

export type TerminalPorts = {
  /** Opens the socket; rejects with an `ApiFailure`, or if the signal aborts before. */
  open(size: TerminalSize, signal: AbortSignal): Promise<WebSocket>;
  onOutput(bytes: Uint8Array): void;
  onState(state: TerminalState): void;
};

export type TerminalSession = ReturnType<typeof createTerminalSession>;

/** The API accepts messages up to 64 KiB. */
const MESSAGE_BYTES = 32 * 1024;
/** Unsent input above which further input is refused. */
const MAX_UNSENT_BYTES = 4 * 1024 * 1024;
/** Maximum of the API for columns and rows. */
const MAX_CELLS = 1_000;

/** One shell at a time. A lost connection ends its shell: it cannot be resumed. */
export function createTerminalSession({ open, onOutput, onState }: TerminalPorts) {
  const encoder = new TextEncoder();
  let socket: WebSocket | null = null;

  function listen(opened: WebSocket, signal: AbortSignal): void {
    let exitCode: number | null = null;
    opened.binaryType = 'arraybuffer';
    opened.onopen = () => onState({ name: 'open' });
    opened.onmessage = ({ data }: { data: unknown }) => {
      if (data instanceof ArrayBuffer) onOutput(new Uint8Array(data));
      else exitCode = exitCodeIn(String(data)) ?? exitCode;
    };
    opened.onclose = (closed) => {
      socket = null;
      const failure = refusalOf(closed);
      if (failure === null) onState({ name: 'ended', text: endText(exitCode, closed) });
      else onState({ name: 'failed', failure });
    };
    const leave = () => {
      opened.onmessage = null;
      opened.onclose = null;
      // Browsers report an error for a socket that is closed before it is open.
      if (opened.readyState === opened.CONNECTING) opened.onopen = () => opened.close();
      else opened.close();
    };
    signal.addEventListener('abort', leave, { once: true });
  }

  return {
    /** Opens a shell. The signal ends it. */
    async start(size: TerminalSize, signal: AbortSignal): Promise<void> {
      onState({ name: 'connecting' });
      try {
        const opened = await open(bounded(size), signal);
        socket = opened;
        listen(opened, signal);
      } catch (error) {
        if (!signal.aborted) onState({ name: 'failed', failure: failureOf(error) });
      }
    },
    /** Sends typed or pasted text. Returns false if the shell does not take it. */
    input(text: string): boolean {
      if (socket?.readyState !== WebSocket.OPEN) return false;
      if (socket.bufferedAmount > MAX_UNSENT_BYTES) return false;
      const bytes = encoder.encode(text);
      for (let at = 0; at < bytes.length; at += MESSAGE_BYTES) {
        socket.send(bytes.subarray(at, at + MESSAGE_BYTES));
      }
      return true;
    },
    resize(size: TerminalSize): void {
      if (socket?.readyState !== WebSocket.OPEN) return;
      socket.send(JSON.stringify({ type: 'resize', ...bounded(size) }));
    },
  };
}

function bounded({ cols, rows }: TerminalSize): TerminalSize {
  const bound = (cells: number) => Math.min(Math.max(Math.floor(cells), 1), MAX_CELLS);
  return { cols: bound(cols), rows: bound(rows) };
}

/** Reads the last message of a shell; null for others. */
export function exitCodeIn(message: string): number | null {
  try {
    const { type, code } = JSON.parse(message) as { type?: unknown; code?: unknown };
    return type === 'exit' && typeof code === 'number' ? code : null;
  } catch {
    return null;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  pod_deleted: 'The pod was deleted.',
  credential_revoked: 'The session that opened the shell has ended, and the shell with it.',
  server_shutdown: 'The server restarts. The shell has ended.',
};

/** Returns why a shell has ended. `code` and `reason` are those of the socket. */
export function endText(
  exitCode: number | null,
  { code, reason }: { code: number; reason: string },
): string {
  if (exitCode !== null) return `The shell has ended with status ${exitCode}.`;
  const known = REASONS[reason];
  if (known !== undefined) return known;
  return code === 1000
    ? 'The shell has ended.'
    : 'The connection was lost, and the shell has ended with its programs. A shell cannot be resumed.';
}
