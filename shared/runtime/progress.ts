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

type Step = { text: string; beganMs: number; done: number; of: number };

/** Elsewhere than on a terminal each step begins with a line, and has another every few seconds. */
export function createProgress(clock: Clock, terminal: ProgressTerminal): Progress {
  return tellingOf(clock, terminal, true);
}

/** For commands whose output others read: elsewhere than on a terminal nothing of a step that is over at once. */
export function commandProgress(clock: Clock, terminal: ProgressTerminal): Progress {
  return tellingOf(clock, terminal, false);
}

function tellingOf(clock: Clock, terminal: ProgressTerminal, tellsOfEach: boolean): Progress {
  const isDrawn = terminal.isTTY === true;
  let now: Step | null = null;
  let telling = new AbortController();

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

  async function keepTelling(step: Step, signal: AbortSignal): Promise<void> {
    const isOver = () => signal.aborted;
    while (!isOver()) {
      await clock.sleep(isDrawn ? REDRAW_MS : LINE_EVERY_MS, signal).catch(() => undefined);
      if (isOver()) return;
      if (isDrawn) draw(step);
      else addLine(step);
    }
  }

  function end(): void {
    telling.abort();
    if (now !== null && isDrawn) {
      terminal.write(`${CLEAR_LINE}… ${now.text} (${secondsOf(now)})\n`);
    }
    now = null;
  }

  return {
    end,
    step(text) {
      end();
      now = { text, beganMs: clock.monotonicMs(), done: 0, of: 0 };
      if (isDrawn) draw(now);
      else if (tellsOfEach) terminal.write(`… ${text}\n`);
      telling = new AbortController();
      void keepTelling(now, telling.signal);
    },
    at(done, of) {
      if (now === null) return;
      now.done = done;
      now.of = of;
      if (isDrawn) draw(now);
    },
  };
}

/** What a command prints and complains of while a step is under way, which is over with the first of it that shares its terminal. */
type CommandOutput = { print(text: string): void; complain(text: string): void };

/** `work` with its progress on stderr: drawn there, it does not mix with what goes to a file. */
export async function withProgress<T>(
  text: string,
  { clock, stdout, stderr }: { clock: Clock; stdout: ProgressTerminal; stderr: ProgressTerminal },
  work: (output: CommandOutput, progress: Progress) => Promise<T>,
): Promise<T> {
  const progress = commandProgress(clock, stderr);
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
