/** Progress output of commands: one redrawn line on a terminal, otherwise plain lines with the elapsed time. */
import type { Clock } from './clock.ts';

export type ProgressTerminal = {
  write(text: string): unknown;
  isTTY?: boolean | undefined;
  columns?: number | undefined;
};

export type Progress = {
  /** Ends the current step and begins the next. */
  step(text: string): void;
  /** Updates the progress of the current step. */
  at(done: number, of: number): void;
  /** Prints a line above the current step, which continues. */
  note(text: string): void;
  /** Ends the last step; the next output begins on a new line. */
  end(): void;
};

const REDRAW_MS = 1_000;
/** Interval between two plain lines of a step. */
const LINE_EVERY_MS = 5_000;
const MS_PER_SECOND = 1_000;
const BAR_CHARS = 20;
const DEFAULT_COLUMNS = 80;
const CLEAR_LINE = '\r\u001b[2K';

type Step = { text: string; beganMs: number; done: number; of: number };

/**
 * Creates the progress display. Without a terminal, each step prints a line when it begins and another every few
 * seconds.
 */
export function createProgress(clock: Clock, terminal: ProgressTerminal): Progress {
  return startProgress(clock, terminal, true);
}

/**
 * Like `createProgress`, for commands whose output is parsed: without a terminal, a step that ends at once prints
 * nothing.
 */
export function createCommandProgress(clock: Clock, terminal: ProgressTerminal): Progress {
  return startProgress(clock, terminal, false);
}

function startProgress(
  clock: Clock,
  terminal: ProgressTerminal,
  announcesSteps: boolean,
): Progress {
  const isDrawn = terminal.isTTY === true;
  let current: Step | null = null;
  let updating = new AbortController();

  const secondsOf = ({ beganMs }: Step) =>
    `${Math.round((clock.monotonicMs() - beganMs) / MS_PER_SECOND)} s`;

  function draw(step: Step): void {
    const line = `… ${step.text}${barOf(step)} ${secondsOf(step)}`;
    terminal.write(CLEAR_LINE + line.slice(0, (terminal.columns ?? DEFAULT_COLUMNS) - 1));
  }

  function addLine(step: Step): void {
    const share = step.of === 0 ? '' : `: ${step.done} of ${step.of}`;
    terminal.write(`… ${step.text}${share} (${secondsOf(step)})\n`);
  }

  async function update(step: Step, signal: AbortSignal): Promise<void> {
    const isOver = () => signal.aborted;
    while (!isOver()) {
      await clock.sleep(isDrawn ? REDRAW_MS : LINE_EVERY_MS, signal).catch(() => undefined);
      if (isOver()) return;
      if (isDrawn) draw(step);
      else addLine(step);
    }
  }

  function end(): void {
    updating.abort();
    if (current !== null && isDrawn) {
      terminal.write(`${CLEAR_LINE}… ${current.text} (${secondsOf(current)})\n`);
    }
    current = null;
  }

  return {
    end,
    step(text) {
      end();
      current = { text, beganMs: clock.monotonicMs(), done: 0, of: 0 };
      if (isDrawn) draw(current);
      else if (announcesSteps) terminal.write(`… ${text}\n`);
      updating = new AbortController();
      void update(current, updating.signal);
    },
    note(text) {
      if (current === null || !isDrawn) {
        terminal.write(`${text}\n`);
        return;
      }
      terminal.write(`${CLEAR_LINE}${text}\n`);
      draw(current);
    },
    at(done, of) {
      if (current === null) return;
      current.done = done;
      current.of = of;
      if (isDrawn) draw(current);
    },
  };
}

/** Output of a command during a step. Output to the same terminal ends the progress line first. */
type CommandOutput = { print(text: string): void; complain(text: string): void };

/** Runs `work` with progress on stderr, so that it does not mix with output redirected to a file. */
export async function withProgress<T>(
  text: string,
  { clock, stdout, stderr }: { clock: Clock; stdout: ProgressTerminal; stderr: ProgressTerminal },
  work: (output: CommandOutput, progress: Progress) => Promise<T>,
): Promise<T> {
  const progress = createCommandProgress(clock, stderr);
  progress.step(text);
  try {
    return await work(
      {
        print(line) {
          if (stdout.isTTY === true) progress.end();
          stdout.write(line);
        },
        complain(line) {
          progress.end();
          stderr.write(line);
        },
      },
      progress,
    );
  } finally {
    progress.end();
  }
}

function barOf({ done, of }: Step): string {
  if (of === 0) return '';
  const full = Math.round((Math.min(done, of) / of) * BAR_CHARS);
  return ` [${'#'.repeat(full)}${'.'.repeat(BAR_CHARS - full)}] ${done}/${of}`;
}
