/** Parses the arguments of a command line. Collects all problems instead of stopping at the first one. Pure. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { ConfigError } from './config.ts';
import { nearestName } from './nearest-name.ts';

type Parsed<Options extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<{ args: string[]; options: Options; allowPositionals: true }>
>;

export type Arguments<Options extends ParseArgsOptionsConfig> = {
  /** Values of the options without a problem. */
  values: Parsed<Options>['values'];
  /** Arguments that are not options. */
  words: readonly string[];
  /** One sentence for each problem, with the argument and the remedy. */
  problems: readonly string[];
};

/** Accepts long options only. After `--`, every argument is a word. `maxWords`: number of words that are accepted. */
export function readArguments<Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
  maxWords = Number.POSITIVE_INFINITY,
): Arguments<Options> {
  const { usable, problems, wordsInDoubt } = separate(args, options);
  const { values, positionals } = parseArgs({ args: usable, options, allowPositionals: true });
  const extra = positionals.slice(maxWords);
  const ofWords = extra.length > wordsInDoubt ? [`unexpected ${extra.join(' ')}: see --help`] : [];
  return { values, words: positionals, problems: [...problems, ...ofWords] };
}

/** Throws ConfigError with all problems, one a line, if there are any. */
export function requireNone(problems: readonly string[]): void {
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
}

/**
 * Returns the arguments without the wrong options, because `parseArgs` throws at the first of them. `wordsInDoubt`:
 * number of words that follow an unknown option, and may be its value.
 */
function separate(args: readonly string[], options: ParseArgsOptionsConfig) {
  const usable: string[] = [];
  const problems: string[] = [];
  let wordsInDoubt = 0;
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index] ?? '';
    if (arg === '--') return { usable: [...usable, ...args.slice(index)], problems, wordsInDoubt };
    if (!isOption(arg)) {
      usable.push(arg);
      continue;
    }
    const [written = '', ...inline] = arg.split('=');
    const type = typeOf(written, options);
    const next = args[index + 1];
    const isFollowed = next !== undefined && !isOption(next);
    if (type === null) {
      problems.push(unknownOption(written, options));
      if (isFollowed && inline.length === 0) wordsInDoubt += 1;
    } else if (type === 'boolean') {
      if (inline.length === 0) usable.push(arg);
      else problems.push(`${written} takes no value: write ${written}`);
    } else if (inline.length > 0) {
      usable.push(arg);
    } else if (isFollowed) {
      usable.push(arg, next);
      index += 1;
    } else {
      problems.push(`${written} needs a value: write ${written}=VALUE`);
    }
  }
  return { usable, problems, wordsInDoubt };
}

/** A lone `-` is a word. */
function isOption(arg: string): boolean {
  return arg.startsWith('-') && arg !== '-';
}

/** Returns null for an unknown option. */
function typeOf(written: string, options: ParseArgsOptionsConfig): 'string' | 'boolean' | null {
  const name = written.replace(/^--/, '');
  if (name === written || !Object.hasOwn(options, name)) return null;
  return options[name]?.type ?? null;
}

function unknownOption(written: string, options: ParseArgsOptionsConfig): string {
  const nearest = nearestName(written.replace(/^-+/, ''), Object.keys(options));
  const remedy = nearest === null ? 'see --help' : `did you mean --${nearest}?`;
  return `unknown option ${written}: ${remedy}`;
}
