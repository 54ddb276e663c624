/** Extracts from a process's output the lines that explain why the process ended. Pure. */
import { z } from 'zod';

/** Level of errors in lines of pino. */
const ERROR_LEVEL = 50;
const MAX_LINES = 3;
const MAX_CHARS = 400;

const LogLine = z.object({
  level: z.number(),
  msg: z.string(),
  err: z.object({ message: z.string() }).optional(),
});

/**
 * Returns the last lines that are not log lines, such as a refused configuration or an uncaught error, else the last
 * logged error. Null if the output has neither.
 */
export function lastErrorIn(output: string): string | null {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const entries = lines.map((line) => ({ line, logged: loggedIn(line) }));
  const plain = entries.filter(({ logged }) => logged === null).map(({ line }) => line.trim());
  // The frames of a stack and Node's version follow the message of an uncaught error.
  const said = plain.filter((line) => !/^(?:at |Node\.js v|node:|throw |\^|\})/.test(line));
  if (said.length > 0) return shortened(said.slice(-MAX_LINES).join('\n'));
  const error = entries.findLast(({ logged }) => (logged?.level ?? 0) >= ERROR_LEVEL)?.logged;
  if (error === null || error === undefined) return null;
  return shortened(error.err === undefined ? error.msg : `${error.msg}: ${error.err.message}`);
}

function loggedIn(line: string): z.output<typeof LogLine> | null {
  try {
    return LogLine.parse(JSON.parse(line));
  } catch {
    return null;
  }
}

function shortened(text: string): string {
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS)}…`;
}
