/** Command line of `npm run simulate`. */
import { z } from 'zod';
import { readArguments } from '#shared/runtime/arguments.ts';
import { ConfigError } from '#shared/runtime/config.ts';

export const SIMULATE_HELP = `Runs the whole Podwright marketplace in fast motion: the real central API and the real validator on a clock that jumps
from event to event, with modelled hosts, providers and renters. Equal options give equal runs.

  npm run simulate -- [options]

  --providers N          providers, each with one host, 1-20000 (default 200)
  --renters N            renters, 0-50000 (default 500)
  --days N               simulated days, 1-366 (default 3)
  --seed N               seed of all random values, 0-4294967295 (default 1)
  --scenario FILE        supply, demand and faults (default validator/simulate/scenarios/default.json)
  --database ADDRESS     database of the central API: a new SQLite file, or postgres://… of an empty database
                         (default: in memory)
  --out DIR              folder for events.jsonl and report.json (default: none is written)
  --shrink N             after FAILED, looks for a smaller run that fails in the same way, with at most N runs, 0-10000
                         (default 0)
  --help, --version      print this text or the version, and run nothing

Prints one line for each simulated day, and PASSED or FAILED with the hash of the run. Exits with 0 after PASSED, with
1 after FAILED, and with 6 for wrong options.
`;

const Schema = z.object({
  providers: between(1, 20_000).default(200),
  renters: between(0, 50_000).default(500),
  days: between(1, 366).default(3),
  seed: between(0, 2 ** 32 - 1).default(1),
  scenario: z.string().min(1).optional(),
  database: z.string().min(1).default(':memory:'),
  out: z.string().min(1).optional(),
  shrink: between(0, 10_000).default(0),
  help: z.boolean().default(false),
  version: z.boolean().default(false),
});

export type SimulateOptions = z.output<typeof Schema>;

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;
const OPTIONS = {
  providers: TEXT,
  renters: TEXT,
  days: TEXT,
  seed: TEXT,
  scenario: TEXT,
  database: TEXT,
  out: TEXT,
  shrink: TEXT,
  help: FLAG,
  version: FLAG,
} as const;

/** Throws ConfigError with one line for each problem. */
export function parseSimulateOptions(argv: readonly string[]): SimulateOptions {
  const { values, problems } = readArguments(argv, OPTIONS, 0);
  const parsed = Schema.safeParse(values);
  const wrong = parsed.error?.issues.map(({ path: [name = ''], message }) => {
    const value = Object.entries(values).find(([key]) => key === name)?.[1];
    return `--${String(name)} ${JSON.stringify(value)}: ${message}`;
  });
  const all = [...problems, ...(wrong ?? [])];
  if (all.length > 0 || !parsed.success) throw new ConfigError(all.join('\n'));
  return parsed.data;
}

function between(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z.coerce.number(message).int(message).min(min, message).max(max, message);
}
