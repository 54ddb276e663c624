/** What the engine says of a build, in the terms of the renter's own text: without our lines in it. */

import type { BuildText } from './build-context.ts';
import type { BuildLine } from './build-log.ts';

/** Of a failure's message: the engine's own words, and the failing step's last lines. */
const MAX_WORDS = 500;
const LAST_LINES = 20;
const LAST_CHARS = 2_000;

const STEP = /^Step (\d+)\/(\d+) : /;
/** What the classic builder says of its own work between steps. */
const BUILDERS_OWN =
  /^(?: ---> (?:Running in )?[0-9a-f]*\s*$| ---> Using cache|Removing intermediate container )/;
const PARSE_ERROR = /parse error (?:on )?line (\d+)/;

export type BuildOutput = ReturnType<typeof createBuildOutput>;

/** Follows one build of `built`. */
export function createBuildOutput({ sources }: BuildText) {
  const count = sources.filter((source) => source !== null).length;
  /** The step under way, as the engine counts them; 0 before the first. */
  let step = 0;
  let shown = 0;

  return {
    /** A line as the renter is to see it; null: not at all. Call it for each line in order. */
    edit(line: string): string | null {
      const [head = '', number, total] = STEP.exec(line) ?? [];
      // A step's own output may look like it.
      const isNext = Number(number) === step + 1 && Number(total) === sources.length;
      if (!isNext || step === sources.length) return line;
      const isOurs = sources[step] === null;
      step += 1;
      if (isOurs) return null;
      shown += 1;
      return `Step ${shown}/${count} : ${line.slice(head.length)}`;
    },
    /** The engine's words on why it failed, with the line of the renter's text, and the step's last lines. */
    failureOf(words: string, lines: readonly BuildLine[]): string {
      const parsed = PARSE_ERROR.exec(words)?.[1];
      const at = parsed === undefined ? sources[step - 1] : sources[Number(parsed) - 1];
      const reason = shortened(words.replace(PARSE_ERROR, 'parse error'));
      const output = step === 0 ? '' : lastLines(lines);
      return `${at == null ? '' : `Line ${at}: `}${reason}\n${output}`.trim();
    },
  };
}

function lastLines(lines: readonly BuildLine[]): string {
  const texts = lines.map(({ log }) => log);
  const begun = texts.findLastIndex((text) => STEP.test(text));
  const own = texts.slice(begun + 1).filter((text) => !BUILDERS_OWN.test(text));
  return own.slice(-LAST_LINES).join('').slice(-LAST_CHARS);
}

/** A command that failed is named whole by the engine: its end says how it failed. */
function shortened(words: string): string {
  if (words.length <= MAX_WORDS) return words;
  return `${words.slice(0, MAX_WORDS / 2)} … ${words.slice(-MAX_WORDS / 2)}`;
}

/** A Dockerfile that cannot be built; its message is for the renter and ends with the log's last lines. */
export class BuildFailure extends Error {
  override name = 'BuildFailure';
}
