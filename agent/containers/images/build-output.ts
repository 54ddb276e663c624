/** Translates the engine's build output to the line and step numbers of the renter's Dockerfile. */

import type { BuildText } from './build-context.ts';
import type { BuildLine } from './build-log.ts';

/** Length limits of the failure message, which has the engine's error and the last lines of the failed step. */
const MAX_REASON_CHARS = 500;
const LAST_LINES = 20;
const LAST_CHARS = 2_000;

const STEP = /^Step (\d+)\/(\d+) : /;
/** Lines that the classic builder prints about its own work. */
const BUILDER_LINE =
  /^(?: ---> (?:Running in )?[0-9a-f]*\s*$| ---> Using cache|Removing intermediate container )/;
const PARSE_ERROR = /parse error (?:on )?line (\d+)/;

export type BuildOutput = ReturnType<typeof createBuildOutput>;

/** Translates the output of one build of `built`. */
export function createBuildOutput({ sources }: BuildText) {
  const count = sources.filter((source) => source !== null).length;
  /** Number of the current step in the engine's count; 0 before the first. */
  let step = 0;
  let shown = 0;

  return {
    /** Returns the line for the renter, or null to hide it. Call for each line in order. */
    edit(line: string): string | null {
      const [head = '', number, total] = STEP.exec(line) ?? [];
      // A step's own output may look like a step header.
      const isNext = Number(number) === step + 1 && Number(total) === sources.length;
      if (!isNext || step === sources.length) return line;
      const isAdded = sources[step] === null;
      step += 1;
      if (isAdded) return null;
      shown += 1;
      return `Step ${shown}/${count} : ${line.slice(head.length)}`;
    },
    /** Returns the failure message: line of the renter's Dockerfile, engine error, last lines of the step. */
    failureOf(error: string, lines: readonly BuildLine[]): string {
      const parsed = PARSE_ERROR.exec(error)?.[1];
      const at = parsed === undefined ? sources[step - 1] : sources[Number(parsed) - 1];
      const reason = shortened(error.replace(PARSE_ERROR, 'parse error'));
      const output = step === 0 ? '' : lastLines(lines);
      return `${at == null ? '' : `Line ${at}: `}${reason}\n${output}`.trim();
    },
  };
}

function lastLines(lines: readonly BuildLine[]): string {
  const texts = lines.map(({ log }) => log);
  const begun = texts.findLastIndex((text) => STEP.test(text));
  const own = texts.slice(begun + 1).filter((text) => !BUILDER_LINE.test(text));
  return own.slice(-LAST_LINES).join('').slice(-LAST_CHARS);
}

/** Shortens the text in the middle: the engine prints the whole failed command first and the cause last. */
function shortened(reason: string): string {
  if (reason.length <= MAX_REASON_CHARS) return reason;
  return `${reason.slice(0, MAX_REASON_CHARS / 2)} … ${reason.slice(-MAX_REASON_CHARS / 2)}`;
}

/** The Dockerfile cannot be built. The message is for the renter and ends with the last lines of the log. */
export class BuildFailure extends Error {
  override name = 'BuildFailure';
}
