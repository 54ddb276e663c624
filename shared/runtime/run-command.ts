/** Runs a program as a bounded child: argv only, no shell, deadline, SIGKILL, capped output. */
import { execFile } from 'node:child_process';

export type CommandResult = {
  /** Exit status; null when the child was killed by a signal. */
  exitCode: number | null;
  stdout: string;
  stderr: string;
  /** Why the child was ended by us, if it was. */
  ended: 'timeout' | 'output_limit' | null;
};

export type CommandOptions = {
  timeoutMs: number;
  maxOutputBytes: number;
  env?: Record<string, string>;
  /** What the program reads from its standard input; without it that is empty and closed. */
  input?: string;
};

export type RunCommand = (
  file: string,
  args: readonly string[],
  options: CommandOptions,
) => Promise<CommandResult>;

/** Rejects only when the program cannot be started (ENOENT, EACCES); every exit is a result. */
export const runCommand: RunCommand = (file, args, options) =>
  new Promise((resolve, reject) => {
    const settings = {
      timeout: options.timeoutMs,
      killSignal: 'SIGKILL' as const,
      maxBuffer: options.maxOutputBytes,
      encoding: 'utf8' as const,
      ...(options.env === undefined ? {} : { env: options.env }),
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
    // A program that ends before it has read everything is judged by its exit, not by the broken pipe.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(options.input);
  });
