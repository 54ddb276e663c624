/**
 * Reads a Dockerfile as strictly as it takes to know every image that it starts from. What cannot be known
 * for certain is refused: a build must not make its host knock at addresses of the renter's choice. Pure.
 */
import { DockerfileProblem, expandVariables } from './dockerfile-variables.ts';
import { ImageDigest, ImageReference } from './pod.ts';

export type BaseImage = { reference: string; digest?: string };

/** One instruction on one line, as the builder is to read it. */
export type Instruction = {
  name: string;
  /** What follows the name. */
  rest: string;
  /** The image that it takes from a registry, if it does. */
  image: BaseImage | null;
  /** Its line without the image's name: `before` + name + `after`. */
  around: { before: string; after: string } | null;
};

export type Dockerfile = { instructions: Instruction[]; images: BaseImage[] };

const NAMES = new Set([
  ...['ARG', 'CMD', 'COPY', 'ENTRYPOINT', 'ENV', 'EXPOSE', 'FROM', 'HEALTHCHECK', 'LABEL'],
  ...['MAINTAINER', 'RUN', 'SHELL', 'STOPSIGNAL', 'USER', 'VOLUME', 'WORKDIR'],
]);
/** Those in which an image may be named. */
const READ_CLOSELY = new Set(['ARG', 'COPY', 'FROM']);
const STRANGE = /[^\P{Cc}\t]|[^\P{Z} ]|\uFEFF/u;
const MAX_STAGES = 32;
const DIRECTIVE = /^#\s*([a-z]+)\s*=\s*(\S.*?)\s*$/i;
const CONTINUED = /\\[ \t]*$/;

/** Never throws: the problem is one sentence for the renter. */
export function parseDockerfile(text: string): Dockerfile | { problem: string } {
  try {
    return read(text);
  } catch (error) {
    if (error instanceof DockerfileProblem) return { problem: error.message };
    throw error;
  }
}

function read(text: string): Dockerfile {
  if (text.includes('\0')) throw new DockerfileProblem('It contains a NUL character');
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  checkDirectives(lines);
  const arguments_ = new Map<string, string>();
  const stages: string[] = [];
  let begun = 0;
  const instructions = joined(lines).map((line): Instruction => {
    const { name, rest } = split(line);
    if (name === 'FROM') {
      begun += 1;
      if (begun > MAX_STAGES) throw new DockerfileProblem(`More than ${MAX_STAGES} stages`);
      return readFrom(rest, arguments_, stages);
    }
    if (begun === 0) {
      if (name !== 'ARG') throw new DockerfileProblem(`${name} before the first FROM`);
      noteArgument(rest, arguments_);
    }
    return readInstruction(name, rest, stages);
  });
  if (begun === 0) throw new DockerfileProblem('It has no FROM');
  const images = instructions.flatMap(({ image }) => (image === null ? [] : [image]));
  return { instructions, images: unique(images) };
}

/** `# escape` would change how every line is read, `# syntax` who reads it. */
function checkDirectives(lines: readonly string[]): void {
  for (const line of lines) {
    const [, name = '', value = ''] = DIRECTIVE.exec(line.trim()) ?? [];
    if (name === '') return;
    if (name.toLowerCase() === 'escape' && value !== '\\') {
      throw new DockerfileProblem('Another escape character is not supported');
    }
  }
}

/** Comments and blank lines gone, continued lines made one. */
function joined(lines: readonly string[]): string[] {
  const out: string[] = [];
  let open: string | null = null;
  for (const line of lines) {
    if (/^\s*(?:#|$)/.test(line)) continue;
    const whole: string = open === null ? line.trimStart() : open + line;
    const isContinued = CONTINUED.test(whole);
    open = isContinued ? whole.replace(CONTINUED, '') : null;
    if (!isContinued) out.push(whole.trimEnd());
  }
  if (open !== null) throw new DockerfileProblem('Its last line ends in a backslash');
  return out;
}

function split(line: string): { name: string; rest: string } {
  const [, word = '', rest = ''] = /^([A-Za-z]+)(?:\s+([\s\S]*))?$/.exec(line.trim()) ?? [];
  const name = word.toUpperCase();
  if (name === 'ADD') {
    throw new DockerfileProblem('ADD is refused: there is no build context; fetch files in RUN');
  }
  if (name === 'ONBUILD') throw new DockerfileProblem('ONBUILD is not supported');
  if (!NAMES.has(name)) {
    throw new DockerfileProblem(`Not an instruction: ${line.slice(0, 40)}`);
  }
  // The builder takes other characters for white space than we do.
  if (READ_CLOSELY.has(name) && STRANGE.test(rest)) {
    throw new DockerfileProblem(`${name} with control characters or unusual spaces`);
  }
  return { name, rest: rest.trim() };
}

function noteArgument(rest: string, known: Map<string, string>): void {
  const [, name, value = ''] = /^([A-Za-z_]\w*)(?:=(\S*))?$/.exec(rest) ?? [];
  if (name === undefined) {
    throw new DockerfileProblem(`Before FROM, ARG takes one NAME=value without spaces: ${rest}`);
  }
  known.set(name, expandVariables(unquoted(value), known));
}

function unquoted(text: string): string {
  return /^(["'])(.*)\1$/.exec(text)?.[2] ?? text;
}

function readFrom(rest: string, known: Map<string, string>, stages: string[]): Instruction {
  const words = rest.split(/\s+/);
  const [word = '', as, stage] = words;
  if (word.startsWith('--')) {
    throw new DockerfileProblem('FROM takes no flags here: the platform is the node’s own');
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
  // Written out: the builder must not expand anything to something else.
  const plain = { name: 'FROM', rest: `${base}${after}`, image: null, around: null };
  if (isEarlier) return plain;
  return { ...plain, image: imageOf(base), around: { before: 'FROM ', after } };
}

function readInstruction(name: string, rest: string, stages: readonly string[]): Instruction {
  const plain = { name, rest, image: null, around: null };
  if (name === 'LABEL') checkLabel(rest);
  return name === 'COPY' ? { ...plain, ...copiedFrom(rest, stages) } : plain;
}

/** The builder takes quotes and backslashes in flags for nothing: here no flag may hide behind them. */
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
  // The stage that is being built is none to copy from.
  const isStage = from !== undefined && stages.slice(0, -1).includes(from.toLowerCase());
  if (from === undefined || isStage || /^\d{1,3}$/.test(from)) return null;
  const others = flags.filter((flag) => !flag.startsWith('--from='));
  const after = ` ${[...others, ...words.slice(flags.length)].join(' ')}`;
  return { image: imageOf(from), around: { before: 'COPY --from=', after } };
}

/** The agent knows its own objects by their labels. */
function checkLabel(rest: string): void {
  if (/podwright/i.test(rest.replace(/["'\\]/g, ''))) {
    throw new DockerfileProblem('LABEL io.podwright.* is the node’s own');
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
