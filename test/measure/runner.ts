/** Command line of `npm run bench` and `npm run soak`: runs the chosen parts, prints their rows and writes JSON. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { ConfigError } from '#shared/runtime/config.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { Row } from './row.ts';

/** Measures one part and reports each row as soon as it is complete. */
export type Part<Options> = {
  /** Shown by --help. */
  about: string;
  run(options: Options, note: (row: Row) => void): Promise<void>;
};

export type Measurement<Options> = {
  /** `bench` or `soak`. */
  command: string;
  /** Paragraph below the usage line of --help. */
  about: string;
  parts: Record<string, Part<Options>>;
  resultFile: string;
  /** Options besides --only and --help, each with what --help shows for its value. */
  flags: Readonly<Record<string, string>>;
  /** Converts the values of `flags`; null if a value is invalid. */
  optionsOf(values: Record<string, string | undefined>): Options | null;
};

const FLAG = { type: 'boolean' } as const;
/** Exit status after an interruption. */
const INTERRUPTED = 130;
const WRONG_USAGE = 2;

/**
 * Runs all parts, or the part that --only names. Reports a part that this computer cannot run, and exits with 1. Rejects
 * if a part throws another error. A value beyond its limit does not change the exit status.
 */
export async function measure<Options>(
  measurement: Measurement<Options>,
  words: readonly string[],
): Promise<void> {
  const chosen = parse(measurement, words);
  if (chosen === 'version') return print(VERSION);
  if (chosen === 'help' || chosen === null) {
    process.stdout.write(helpOf(measurement));
    process.exitCode = chosen === null ? WRONG_USAGE : 0;
    return;
  }
  // Parts remove what they leave on this computer when the process exits.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => process.exit(INTERRUPTED));
  }
  const rows: Row[] = [];
  const note = (row: Row) => {
    rows.push(row);
    print(lineOf(row));
  };
  print('name | measured | reference | ratio | limit | result');
  for (const [name, part] of Object.entries(measurement.parts)) {
    if (chosen.only !== undefined && chosen.only !== name) continue;
    try {
      await part.run(chosen.options, note);
    } catch (error) {
      // This computer lacks what the part measures: no stack trace helps.
      if (!(error instanceof ConfigError)) throw error;
      process.stderr.write(`${measurement.command} --only ${name}: ${error.message}\n`);
      process.exitCode = 1;
    }
  }
  mkdirSync(dirname(measurement.resultFile), { recursive: true });
  writeFileSync(measurement.resultFile, `${JSON.stringify(rows, null, 2)}\n`);
  print(`written to ${measurement.resultFile}; a value beyond its limit does not fail the run`);
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function parse<Options>(
  { parts, flags, optionsOf }: Measurement<Options>,
  words: readonly string[],
) {
  const options = Object.fromEntries(
    ['only', ...Object.keys(flags)].map((name) => [name, { type: 'string' as const }]),
  );
  try {
    const { values } = parseArgs({
      args: [...words],
      options: { ...options, help: FLAG, version: FLAG },
    });
    if (values['help'] === true) return 'help';
    if (values['version'] === true) return 'version';
    const { only, ...others } = values as Record<string, string | undefined>;
    const accepted = optionsOf(others);
    const known = only === undefined || Object.hasOwn(parts, only);
    return known && accepted !== null ? { only, options: accepted } : null;
  } catch {
    return null;
  }
}

function helpOf<Options>({ command, about, parts, flags }: Measurement<Options>): string {
  const names = Object.keys(parts);
  const width = Math.max(...names.map((name) => name.length));
  const valued = Object.entries(flags).map(([flag, value]) => `--${flag} ${value}`);
  const usage = [`--only ${names.join('|')}`, ...valued];
  const list = Object.entries(parts).map(
    ([name, part]) => `  ${name.padEnd(width)}  ${part.about}`,
  );
  return `Usage: npm run ${command} -- ${usage.map((each) => `[${each}]`).join(' ')}

${about}

${list.join('\n')}
`;
}

function lineOf({ name, ours, unit, reference, against, ratio, bar, holds }: Row): string {
  return [
    name,
    `${ours.toFixed(1)} ${unit}`,
    reference === null ? '-' : `${reference.toFixed(1)} ${unit} (${against})`,
    ratio === null ? '-' : `${ratio.toFixed(2)}x`,
    bar,
    holds ? 'met' : 'MISSED',
  ].join(' | ');
}
