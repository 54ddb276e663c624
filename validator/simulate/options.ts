/** Command line of `npm run simulate`. */
import { z } from 'zod';
import { readArguments } from '#shared/runtime/arguments.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { TEMPORARY_FILE } from '#shared/runtime/sqlite.ts';

export const SIMULATE_HELP = `Runs the whole Podwright marketplace in fast motion: the real central API and the real validator on a clock that jumps
from event to event, with modelled hosts, providers and renters. Equal options give equal runs.

  npm run simulate -- [options]
  npm run simulate -- compare A B [--seeds 1,2,3] [options]

  --providers N          providers, each with one host, 1-20000 (default 200)
  --renters N            renters, 0-50000 (default 500)
  --days N               simulated days, 1-366 (default 3)
  --seed N               seed of all random values, 0-4294967295 (default 1)
  --scenario FILE        supply, demand and faults (default validator/simulate/scenarios/default.json)
  --policy FILE          weight policy of the validator, also of an older version
                         (default validator/weights/default-policy.json)
  --trace FILE           hosts or jobs of a public cluster trace, instead of those of the scenario: Alibaba gpu-v2023,
                         Alibaba v2026 spot or Philly, as published; give the option once for each file
  --database ADDRESS     database of the central API: a new SQLite file, or postgres://… of an empty database
                         (default: a temporary file in the folder TMPDIR or /tmp)
  --out DIR              folder for report.html, report.json and events.jsonl (default: none is written)
  --shrink N             after FAILED, looks for a smaller run that fails in the same way, with at most N runs, 0-10000
                         (default 0)
  --until WHEN           ends the run at a time after its start (90m, 36h, 2d), at the event with a number (1200), or at
                         the first event of a kind (fault-region), and prints the state of all objects
  --pod NAME             prints the events, leases and charges of the pods with this id or name
  --help, --version      print this text or the version, and run nothing

Prints one line for each simulated day, and PASSED or FAILED with the hash of the run. Exits with 0 after PASSED, with
1 after FAILED, and with 6 for wrong options.

compare runs A and B with each seed, and prints the difference of each figure with its 95 % confidence interval. A and B
are scenarios, weight policies, or folders that --out has written. With --out, it writes compare.html and the report of
each run. --scenario is the scenario of weight policies.
`;

export type Until =
  | { kind: 'time'; afterMs: number }
  | { kind: 'number'; event: number }
  | { kind: 'event'; event: string };

const SECOND_MS = 1_000;
const UNITS_MS: Readonly<Record<string, number>> = {
  s: SECOND_MS,
  m: 60 * SECOND_MS,
  h: 3_600 * SECOND_MS,
  d: 86_400 * SECOND_MS,
};
const UNTIL = 'must be a time such as 36h, the number of an event, or a kind of event';
const Until = z.string().transform((text, context): Until => {
  const time = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text);
  const unit = UNITS_MS[time?.[2] ?? ''];
  if (time !== null && unit !== undefined) {
    return { kind: 'time', afterMs: Math.round(Number(time[1]) * unit) };
  }
  if (/^\d{1,12}$/.test(text)) return { kind: 'number', event: Number(text) };
  if (/^[a-z][a-z-]*$/.test(text)) return { kind: 'event', event: text };
  context.addIssue({ code: 'custom', message: UNTIL });
  return z.NEVER;
});

/** Shared by single runs and comparisons. */
const Size = {
  providers: between(1, 20_000).default(200),
  renters: between(0, 50_000).default(500),
  days: between(1, 366).default(3),
  scenario: z.string().min(1).optional(),
  out: z.string().min(1).optional(),
  help: z.boolean().default(false),
  version: z.boolean().default(false),
};
const Schema = z.object({
  ...Size,
  seed: between(0, 2 ** 32 - 1).default(1),
  policy: z.string().min(1).optional(),
  trace: z.array(z.string().min(1)).max(2).default([]),
  database: z.string().min(1).default(TEMPORARY_FILE),
  shrink: between(0, 10_000).default(0),
  until: Until.optional(),
  pod: z.string().min(1).max(100).optional(),
});
export type SimulateOptions = z.output<typeof Schema>;

const MAX_SEEDS = 31;
const SEEDS = `must be 2 to ${MAX_SEEDS} different whole numbers, such as 1,2,3`;
const CompareSchema = z.object({
  ...Size,
  seeds: z
    .string()
    .regex(/^\d{1,10}(?:,\d{1,10})*$/, SEEDS)
    .transform((text) => text.split(',').map(Number))
    .refine((seeds) => seeds.length > 1 && seeds.length <= MAX_SEEDS, SEEDS)
    .refine((seeds) => new Set(seeds).size === seeds.length, SEEDS)
    .default([1, 2, 3, 4, 5]),
});
export type CompareOptions = z.output<typeof CompareSchema> & { a: string; b: string };

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;
const SIZE = {
  providers: TEXT,
  renters: TEXT,
  days: TEXT,
  scenario: TEXT,
  out: TEXT,
  help: FLAG,
  version: FLAG,
} as const;
const OPTIONS = {
  ...SIZE,
  seed: TEXT,
  policy: TEXT,
  trace: { type: 'string', multiple: true },
  database: TEXT,
  shrink: TEXT,
  until: TEXT,
  pod: TEXT,
} as const;

/** Throws ConfigError with one line for each problem. */
export function parseSimulateOptions(argv: readonly string[]): SimulateOptions {
  const { values, problems } = readArguments(argv, OPTIONS, 0);
  return parsed(Schema, values, problems);
}

/** Parses the arguments after `compare`. Throws ConfigError with one line for each problem. */
export function parseCompareOptions(argv: readonly string[]): CompareOptions {
  const { values, words, problems } = readArguments(argv, { ...SIZE, seeds: TEXT }, 2);
  const [a = '', b = ''] = words;
  const isUsable = b !== '' || values.help === true || values.version === true;
  const missing = isUsable ? [] : ['compare needs two files or folders: compare A B'];
  return { ...parsed(CompareSchema, values, [...problems, ...missing]), a, b };
}

function parsed<Schema extends z.ZodType>(
  schema: Schema,
  values: object,
  problems: readonly string[],
): z.output<Schema> {
  const result = schema.safeParse(values);
  const wrong = result.error?.issues.map(({ path: [name = ''], message }) => {
    const value = Object.entries(values).find(([key]) => key === name)?.[1];
    return `--${String(name)} ${JSON.stringify(value)}: ${message}`;
  });
  const all = [...problems, ...(wrong ?? [])];
  if (all.length > 0 || !result.success) throw new ConfigError(all.join('\n'));
  return result.data;
}

function between(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z.coerce.number(message).int(message).min(min, message).max(max, message);
}
