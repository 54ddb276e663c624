/**
 * Parses a Dockerfile strictly enough to know every image that it uses. Anything ambiguous is rejected, so that a build
 * cannot make the host contact an address that the renter chooses. Pure.
 */
import {
  atLine,
  type DockerfileLine,
  DockerfileProblem,
  dockerfileLines,
  expandVariables,
  HEREDOC,
  NO_CONTEXT,
} from './dockerfile-lines.ts';
import { ImageDigest, ImageReference } from './pod.ts';

export type BaseImage = { reference: string; digest?: string };

/** An instruction, as a single line for the builder. */
export type Instruction = {
  name: string;
  /** Line number in the text at which the instruction begins, from 1. */
  line: number;
  /** The text after the name. */
  rest: string;
  /** The registry image that the instruction uses; null if it uses none. */
  image: BaseImage | null;
  /** The line around the image's name: `before` + name + `after`. */
  around: { before: string; after: string } | null;
};

type Unplaced = Omit<Instruction, 'line'>;

export type Dockerfile = { instructions: Instruction[]; images: BaseImage[] };

const MAX_STAGES = 32;
const EMPTY =
  'scratch is empty: start from an image such as ubuntu:24.04, or fill it by COPY --from=<stage or image>';

/** Returns the instructions and images, or the problem as a sentence for the renter. */
export function parseDockerfile(text: string): Dockerfile | { problem: string } {
  try {
    return read(text);
  } catch (error) {
    if (error instanceof DockerfileProblem) return { problem: error.message };
    throw error;
  }
}

function read(text: string): Dockerfile {
  const buildArguments = new Map<string, string>();
  const stages: string[] = [];
  /** Line of the current stage if it began with scratch and is still empty. */
  let emptySince: number | null = null;

  function readLine({ name, rest, line }: DockerfileLine): Instruction {
    if (name === 'FROM') {
      if (stages.length === MAX_STAGES)
        throw new DockerfileProblem(`More than ${MAX_STAGES} stages`);
      const from = readFrom(rest, buildArguments, stages);
      emptySince = /^scratch(?: |$)/.test(from.rest) ? line : null;
      return { ...from, line };
    }
    if (stages.length === 0) {
      if (name !== 'ARG') throw new DockerfileProblem(`${name} before the first FROM`);
      readArgument(rest, buildArguments);
    }
    if (name === 'RUN' && emptySince !== null) throw new DockerfileProblem(EMPTY);
    if (name === 'COPY') emptySince = null;
    return { ...readInstruction(name, rest, stages), line };
  }

  const instructions = dockerfileLines(text).map((each) => atLine(each.line, () => readLine(each)));
  if (stages.length === 0) throw new DockerfileProblem('It has no FROM');
  if (emptySince !== null) throw new DockerfileProblem(EMPTY, emptySince);
  const images = instructions.flatMap(({ image }) => (image === null ? [] : [image]));
  return { instructions, images: unique(images) };
}

function readArgument(rest: string, known: Map<string, string>): void {
  const [, name, value = ''] = /^([A-Za-z_]\w*)(?:=(\S*))?$/.exec(rest) ?? [];
  if (name === undefined) {
    throw new DockerfileProblem(`Before FROM, ARG takes one NAME=value without spaces: ${rest}`);
  }
  known.set(name, expandVariables(unquoted(value), known));
}

function unquoted(text: string): string {
  return /^(["'])(.*)\1$/.exec(text)?.[2] ?? text;
}

function readFrom(rest: string, known: Map<string, string>, stages: string[]): Unplaced {
  const words = rest.split(/\s+/);
  const [word = '', as, stage] = words;
  if (word.startsWith('--')) {
    throw new DockerfileProblem('FROM takes no flags: the platform is that of the node');
  }
  const isNamed = words.length === 3 && as?.toUpperCase() === 'AS';
  const isName = stage === undefined || /^[a-z][a-z0-9_.-]*$/i.test(stage);
  if (words.length !== 1 && !(isNamed && isName)) {
    throw new DockerfileProblem(`Not FROM image [AS name]: ${rest}`);
  }
  const base = expandVariables(unquoted(word), known);
  const after = stage === undefined ? '' : ` AS ${stage}`;
  const isEarlier = base === 'scratch' || stages.includes(base.toLowerCase());
  stages.push((stage ?? '').toLowerCase());
  // Variables are already expanded, so that the builder cannot expand them differently.
  const plain = { name: 'FROM', rest: `${base}${after}`, image: null, around: null };
  if (isEarlier) return plain;
  return { ...plain, image: imageOf(base), around: { before: 'FROM ', after } };
}

function readInstruction(name: string, rest: string, stages: readonly string[]): Unplaced {
  const plain = { name, rest, image: null, around: null };
  if (name === 'LABEL') checkLabel(rest);
  return name === 'COPY' ? { ...plain, ...copiedFrom(rest, stages) } : plain;
}

/**
 * Returns the image in `--from`. Rejects quotes and backslashes, which the builder ignores in flags: they could hide a
 * --from.
 */
function copiedFrom(
  rest: string,
  stages: readonly string[],
): Pick<Instruction, 'image' | 'around'> | null {
  const words = rest.split(/[ \t]+/);
  const flags = words.slice(
    0,
    words.findIndex((word) => !word.startsWith('--')),
  );
  const strange = flags.find((flag) => !/^--(?:from|chown|chmod)=[^"'\\]+$/.test(flag));
  if (strange !== undefined) throw new DockerfileProblem(`Not a flag of COPY: ${strange}`);
  const froms = flags.filter((flag) => flag.startsWith('--from='));
  if (froms.length > 1) throw new DockerfileProblem('COPY with more than one --from');
  const from = froms[0]?.slice('--from='.length);
  if (from === undefined) throw new DockerfileProblem(withoutFrom(rest));
  // A stage cannot copy from itself.
  const isStage = stages.slice(0, -1).includes(from.toLowerCase());
  if (isStage || /^\d{1,3}$/.test(from)) return null;
  const others = flags.filter((flag) => !flag.startsWith('--from='));
  const after = ` ${[...others, ...words.slice(flags.length)].join(' ')}`;
  return { image: imageOf(from), around: { before: 'COPY --from=', after } };
}

function withoutFrom(rest: string): string {
  return HEREDOC.test(rest)
    ? 'Here-documents need BuildKit, which is not supported: write the file in RUN, for example with printf'
    : `COPY without --from=<stage or image> is refused: ${NO_CONTEXT}`;
}

/** Rejects labels with the prefix by which the agent identifies its objects. */
function checkLabel(rest: string): void {
  if (/podwright/i.test(rest.replace(/["'\\]/g, ''))) {
    throw new DockerfileProblem('LABEL io.podwright.* is reserved for the node');
  }
  if (rest.includes('$')) throw new DockerfileProblem('LABEL with variables is not supported');
}

function imageOf(text: string): BaseImage {
  const [reference = '', digest, ...more] = text.split('@');
  const isPinned = digest !== undefined;
  const isKnown = ImageReference.safeParse(reference).success && more.length === 0;
  if (!isKnown || (isPinned && !ImageDigest.safeParse(digest).success)) {
    throw new DockerfileProblem(`Not an image reference: ${text.slice(0, 100)}`);
  }
  return isPinned ? { reference, digest } : { reference };
}

function unique(images: readonly BaseImage[]): BaseImage[] {
  const byText = new Map(images.map((image) => [`${image.reference}@${image.digest}`, image]));
  return [...byText.values()];
}
