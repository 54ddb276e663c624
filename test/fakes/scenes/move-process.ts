/** The command `move` of the central API as a real process. */
import { type CommandProcess, startCommand } from './command-process.ts';

/** Starts `move` with further arguments, such as `--to ADDRESS`. */
export function startMoveProcess(file: string, ...args: readonly string[]): CommandProcess {
  return startCommand('validator/central/main.ts', ['move', '--database', file, ...args]);
}
