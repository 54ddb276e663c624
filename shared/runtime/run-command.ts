/** Runs a program as a child process without a shell, with a timeout (SIGKILL) and bounded output. */
import { execFile } from 'node:child_process';

export type CommandResult = {
  /** Exit status; null if a signal killed the child. */
  exitCode: number | null;
  stdout: string;
  stderr: string;
  /** Why `runCommand` killed the child; null if it did not. */
  ended: 'timeout' | 'output_limit' | null;
};

export type CommandOptions = {
  timeoutMs: number;
  maxOutputBytes: number;
  env?: Record<string, string>;
  /** Standard input; empty if absent. */
  input?: string;
  /** Kills the program (SIGKILL). */
  signal?: AbortSignal;
};

export type RunCommand = (
  file: string,
  args: readonly string[],
  options: CommandOptions,
) => Promise<CommandResult>;

/**
 * Rejects only if the program cannot be started (ENOENT, EACCES), or if the signal aborts; every exit status is a result.
 */
export const runCommand: RunCommand = (file, args, options) =>
  new Promise((resolve, reject) => {
    const settings = {
      timeout: options.timeoutMs,
      killSignal: 'SIGKILL' as const,
      maxBuffer: options.maxOutputBytes,
      encoding: 'utf8' as const,
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    };
    const child = execFile(file, [...args], settings, (error, stdout, stderr) => {
      if (error === null) {
        resolve({ exitCode: 0, stdout, stderr, ended: null });
      } else if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') {
        resolve({ exitCode: null, stdout, stderr, ended: 'output_limit' });
      } else if (error.killed === true) {
        resolve({ exitCode: null, stdout, stderr, ended: 'timeout' });
      } else if (typeof error.code === 'number') {
        resolve({ exitCode: error.code, stdout, stderr, ended: null });
      } else if (error.signal) {
        resolve({ exitCode: null, stdout, stderr, ended: null });
      } else {
        reject(error);
      }
    });
    // A program may exit before it has read all its input; its exit status decides, not EPIPE.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(options.input);
  });
