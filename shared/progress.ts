/** How far a program is, for whoever waits: a line that is drawn anew on a terminal, plain lines with times elsewhere. */
import type { Clock } from './clock.ts';

export type ProgressTerminal = {
  write(text: string): unknown;
  /** Whether somebody looks at it who sees a line drawn anew. */
  isTTY?: boolean | undefined;
  columns?: number | undefined;
};

export type Progress = {
  /** The next step begins, and the one before is over. */
  step(text: string): void;
  /** How much of it is done. */
  at(done: number, of: number): void;
  /** The last step is over; what is written next begins a line. */
  end(): void;
};

const REDRAW_MS = 1_000;
/** Between two plain lines of one step. */
const LINE_EVERY_MS = 5_000;
const MS_PER_SECOND = 1_000;
const BAR_CHARS = 20;
const DEFAULT_COLUMNS = 80;
const CLEAR_LINE = '\r\u001b[2K';

type Step = { text: string; beganMs: number; toldMs: number; done: number; of: number };

export function createProgress(clock: Clock, terminal: ProgressTerminal): Progress {
  const isDrawn = terminal.isTTY === true;
  let now: Step | null = null;
  let redrawing = new AbortController();

  const secondsOf = ({ beganMs }: Step) =>
    `${Math.round((clock.monotonicMs() - beganMs) / MS_PER_SECOND)} s`;

  function draw(step: Step): void {
    const line = `… ${step.text}${barOf(step)} ${secondsOf(step)}`;
    terminal.write(CLEAR_LINE + line.slice(0, (terminal.columns ?? DEFAULT_COLUMNS) - 1));
  }

  async function redraw(step: Step, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      draw(step);
      await clock.sleep(REDRAW_MS, signal).catch(() => undefined);
    }
  }

  function end(): void {
    redrawing.abort();
    if (now !== null && isDrawn) {
      terminal.write(`${CLEAR_LINE}… ${now.text} (${secondsOf(now)})\n`);
    }
    now = null;
  }

  return {
    end,
    step(text) {
      end();
      const beganMs = clock.monotonicMs();
      now = { text, beganMs, toldMs: beganMs, done: 0, of: 0 };
      if (!isDrawn) {
        terminal.write(`… ${text}\n`);
        return;
      }
      redrawing = new AbortController();
      void redraw(now, redrawing.signal);
    },
    at(done, of) {
      if (now === null) return;
      now.done = done;
      now.of = of;
      if (isDrawn) draw(now);
      else if (clock.monotonicMs() - now.toldMs >= LINE_EVERY_MS) {
        now.toldMs = clock.monotonicMs();
        terminal.write(`… ${now.text}: ${done} of ${of} (${secondsOf(now)})\n`);
      }
    },
  };
}

/** For commands whose output others read: nothing but on a terminal. */
export function terminalProgress(clock: Clock, terminal: ProgressTerminal): Progress {
  if (terminal.isTTY === true) return createProgress(clock, terminal);
  return { step: () => undefined, at: () => undefined, end: () => undefined };
}

function barOf({ done, of }: Step): string {
  if (of === 0) return '';
  const full = Math.round((Math.min(done, of) / of) * BAR_CHARS);
  return ` [${'#'.repeat(full)}${'.'.repeat(BAR_CHARS - full)}] ${done}/${of}`;
}
