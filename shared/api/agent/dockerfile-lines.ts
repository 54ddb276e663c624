/** Splits a Dockerfile into the lines that the builder reads, and expands variables. Pure. */

/** An instruction: its name, the text after it on one line, and the line where it begins, from 1. */
export type DockerfileLine = { name: string; rest: string; line: number };
type Joined = { text: string; line: number };

const NAMES = new Set([
  ...['ARG', 'CMD', 'COPY', 'ENTRYPOINT', 'ENV', 'EXPOSE', 'FROM', 'HEALTHCHECK', 'LABEL'],
  ...['MAINTAINER', 'RUN', 'SHELL', 'STOPSIGNAL', 'USER', 'VOLUME', 'WORKDIR'],
]);
/** Instructions that can name an image. */
const NAMES_IMAGE = new Set(['ARG', 'COPY', 'FROM']);
const STRANGE = /[^\P{Cc}\t]|[^\P{Z} ]|\uFEFF/u;
export const NO_CONTEXT = 'there is no build context; fetch files in RUN';
/** Start of a here-document. */
export const HEREDOC = /<<-?["']?[A-Za-z_]/;

const DIRECTIVE = /^#\s*([a-z]+)\s*=\s*(\S.*?)\s*$/i;
const CONTINUED = /\\[ \t]*$/;

/** Returns the lines. Throws DockerfileProblem if the text is ambiguous. */
export function dockerfileLines(text: string): DockerfileLine[] {
  if (text.includes('\0')) throw new DockerfileProblem('It contains a NUL character');
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  checkDirectives(lines);
  let before = '';
  return joined(lines).map(({ text: whole, line }) => {
    const read = atLine(line, () => split(whole, before));
    before = whole;
    return { ...read, line };
  });
}

/** Runs `work` and adds the line to a DockerfileProblem that it throws. */
export function atLine<T>(line: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof DockerfileProblem ? new DockerfileProblem(error.message, line) : error;
  }
}

/** Rejects `# escape`, which would change how every line is read; `# syntax` is ignored without BuildKit. */
function checkDirectives(lines: readonly string[]): void {
  for (const [index, line] of lines.entries()) {
    const [, name = '', value = ''] = DIRECTIVE.exec(line.trim()) ?? [];
    if (name === '') return;
    if (name.toLowerCase() === 'escape' && value !== '\\') {
      throw new DockerfileProblem('Another escape character is not supported', index + 1);
    }
  }
}

/** Removes comments and blank lines, and joins continued lines. */
function joined(lines: readonly string[]): Joined[] {
  const out: Joined[] = [];
  let open: Joined | null = null;
  for (const [index, line] of lines.entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue;
    const begun: Joined = open ?? { text: '', line: index + 1 };
    const whole: string = open === null ? line.trimStart() : begun.text + line;
    const isContinued = CONTINUED.test(whole);
    open = isContinued ? { ...begun, text: whole.replace(CONTINUED, '') } : null;
    if (!isContinued) out.push({ ...begun, text: whole.trimEnd() });
  }
  if (open !== null) throw new DockerfileProblem('Its last line ends in a backslash', open.line);
  return out;
}

function split(line: string, before: string): { name: string; rest: string } {
  const [, word = '', rest = ''] = /^([A-Za-z]+)(?:\s+([\s\S]*))?$/.exec(line.trim()) ?? [];
  const name = word.toUpperCase();
  if (name === 'ADD') {
    throw new DockerfileProblem(`ADD is refused: ${NO_CONTEXT}`);
  }
  if (name === 'ONBUILD') throw new DockerfileProblem('ONBUILD is not supported');
  if (!NAMES.has(name)) {
    const why = HEREDOC.test(before) ? ' (here-documents need BuildKit, not supported here)' : '';
    throw new DockerfileProblem(`Not an instruction: ${line.slice(0, 40)}${why}`);
  }
  // The builder treats other characters as white space than our regular expressions do.
  if (NAMES_IMAGE.has(name) && STRANGE.test(rest)) {
    throw new DockerfileProblem(`${name} with control characters or unusual spaces`);
  }
  return { name, rest: rest.trim() };
}

/** A problem of a Dockerfile as a sentence for the renter; begins with the line if it is known. */
export class DockerfileProblem extends Error {
  override name = 'DockerfileProblem';

  constructor(sentence: string, line?: number) {
    super(line === undefined ? sentence : `Line ${line}: ${sentence}`);
  }
}

const VARIABLE = /\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:[-+])([^${}\\]*))?\})/g;

/** Expands `$A`, `${A}`, `${A:-word}` and `${A:+word}` like the builder. Throws for any other `$` or backslash. */
export function expandVariables(text: string, known: ReadonlyMap<string, string>): string {
  if (/\\/.test(text) || text.replace(VARIABLE, '').includes('$')) {
    throw new DockerfileProblem(`Unsupported form of variables: ${text.slice(0, 100)}`);
  }
  return text.replace(
    VARIABLE,
    (_, plain?: string, braced?: string, operator?: string, word: string = '') => {
      const value = known.get(plain ?? braced ?? '') ?? '';
      if (operator === ':-') return value === '' ? word : value;
      if (operator === ':+') return value === '' ? '' : word;
      return value;
    },
  );
}
