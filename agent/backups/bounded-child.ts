/**
 * Runs a long-lived program as a child in its own process group, with bounded output. Cancellation sends SIGINT, then
 * SIGKILL.
 */
import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { Clock } from '#shared/runtime/clock.ts';

/**
 * Time from SIGINT, on which restic removes its lock, to SIGKILL. Short, because a caller that cancels waits for the
 * child to end. If the storage does not respond, the lock remains until the next operation removes it.
 */
const CANCEL_GRACE_MS = 1_200;
const MAX_LINE_CHARS = 64 * 1024;
/** Lines of stderr to retain from its beginning, and as many from its end: an error may precede a long stack trace. */
const MAX_ERROR_LINES = 20;

export type ChildRequest = {
  command: readonly [string, ...string[]];
  cwd?: string;
  environment: Record<string, string>;
  /** Called for each line of stdout; lines longer than 64 KiB are skipped. */
  onLine(line: string): void;
  /** Called for each line of stderr, as `onLine` is. */
  onErrorLine?(line: string): void;
  onStart?(pid: number): void;
  signal: AbortSignal;
};

export type ChildEnd = {
  /** Null if a signal ended the child. */
  exitCode: number | null;
  /** First and last lines of stderr. */
  errorLines: readonly string[];
};

export type RunChild = (request: ChildRequest) => Promise<ChildEnd>;

/** Rejects if the child cannot be started, and with the signal's reason once an aborted child has ended. */
export function createRunChild(clock: Clock): RunChild {
  return ({ command: [file, ...args], cwd, environment, onLine, onErrorLine, onStart, signal }) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const child = spawn(file, args, {
        ...(cwd === undefined ? {} : { cwd }),
        env: environment,
        // The child leads its own process group, so that a kill reaches everything that it starts.
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const over = new AbortController();
      const errorLines: string[] = [];
      readLines(child.stdout, onLine);
      readLines(child.stderr, (line) => {
        onErrorLine?.(line);
        errorLines.push(line);
        if (errorLines.length > 2 * MAX_ERROR_LINES) errorLines.splice(MAX_ERROR_LINES, 1);
      });
      const cancel = () => {
        if (child.pid === undefined) return;
        const { pid } = child;
        signalGroup(pid, 'SIGINT');
        const kill = () => signalGroup(pid, 'SIGKILL');
        clock.sleep(CANCEL_GRACE_MS, over.signal).then(kill, () => undefined);
      };
      const settle = (finish: () => void) => {
        over.abort();
        signal.removeEventListener('abort', cancel);
        finish();
      };
      signal.addEventListener('abort', cancel, { once: true });
      child.once('error', (error) => settle(() => reject(error)));
      child.once('close', (exitCode) =>
        settle(() => (signal.aborted ? reject(signal.reason) : resolve({ exitCode, errorLines }))),
      );
      if (child.pid !== undefined) onStart?.(child.pid);
    });
}

function signalGroup(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(-pid, name);
  } catch {
    // The group has already ended.
  }
}

function readLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = (lines.pop() ?? '').slice(0, MAX_LINE_CHARS);
    for (const line of lines) if (line !== '' && line.length < MAX_LINE_CHARS) onLine(line);
  });
  stream.on('end', () => {
    if (rest !== '') onLine(rest);
  });
}
