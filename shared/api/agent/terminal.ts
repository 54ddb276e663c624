/**
 * A pod's terminal over a WebSocket. Binary messages carry the terminal's bytes; text messages are JSON control
 * messages.
 */
import { z } from 'zod';

/** Maximum size of a message in either direction; a larger message closes the socket with 1009. */
export const MAX_TERMINAL_MESSAGE_BYTES = 64 * 1024;

const MAX_CELLS = 1_000;
const Cells = z.coerce.number().int().min(1).max(MAX_CELLS);
const LATER = `1 to ${MAX_CELLS}; the same holds for a resize message.`;

/** Initial size and type of the terminal. */
export const TerminalQuery = z.object({
  cols: Cells.default(80).describe(`Columns at the beginning, ${LATER}`),
  rows: Cells.default(24).describe(`Rows at the beginning, ${LATER}`),
  term: z
    .string()
    .regex(/^[\w.+-]{1,64}$/, 'Not a terminal type')
    .default('xterm-256color')
    .describe(
      `For TERM. A message of the terminal has at most ${MAX_TERMINAL_MESSAGE_BYTES} bytes.`,
    ),
});
export type TerminalQuery = z.output<typeof TerminalQuery>;

/** A control message of the client. */
export const TerminalRequest = z.strictObject({
  type: z.literal('resize'),
  cols: z.int().min(1).max(MAX_CELLS),
  rows: z.int().min(1).max(MAX_CELLS),
});
export type TerminalRequest = z.output<typeof TerminalRequest>;

/** The last message, when the shell has ended. The socket then closes with 1000. */
export const TerminalExit = z.object({ type: z.literal('exit'), code: z.int() });
export type TerminalExit = z.output<typeof TerminalExit>;
