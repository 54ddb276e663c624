/** `npm run simulate -- compare A B`: differences of two scenarios, policies or sets of runs, paired by seed. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '#shared/runtime/config.ts';
import { TEMPORARY_FILE } from '#shared/runtime/sqlite.ts';
import type { CompareOptions } from '../options.ts';
import type { Report } from '../report/report.ts';
import { nameOfFile, runWithReport } from '../report/run-report.ts';
import { createOutFolder, writeReport } from '../report/write-report.ts';
import { type Comparison, compareReports, runsOf } from './comparison.ts';
import { comparisonHtml } from './comparison-html.ts';
import { comparisonText } from './comparison-text.ts';
import { readSide, type Side } from './sides.ts';

type Run = Pick<CompareOptions, 'providers' | 'renters' | 'days' | 'out' | 'seeds'>;

/** Returns the text of the comparison. `print` receives a line for each run. */
export async function compare(
  options: CompareOptions,
  print: (line: string) => void,
): Promise<string> {
  const { a, b, scenario } = options;
  // Before the runs, which take long.
  if (options.out !== undefined) createOutFolder(options.out);
  const sides = [readSide(a, scenario), readSide(b, scenario)] as const;
  const seeds = seedsOf(sides, options.seeds);
  const reports: { a: Report; b: Report }[] = [];
  for (const seed of seeds) {
    const pair = {
      a: await reportOf(sides[0], seed, { ...options, name: 'a' }),
      b: await reportOf(sides[1], seed, { ...options, name: 'b' }),
    };
    print(`seed ${seed}: A ${outcomeOf(pair.a)}, B ${outcomeOf(pair.b)}\n`);
    reports.push(pair);
  }
  const [first] = reports;
  if (first === undefined) throw new ConfigError('there is no run to compare');
  const comparison: Comparison = {
    a: { name: nameOfFile(a), path: a },
    b: { name: nameOfFile(b), path: b },
    runs: runsOf(first),
    seeds,
    rows: compareReports(reports),
  };
  if (options.out !== undefined) {
    writeFileSync(join(options.out, 'compare.html'), comparisonHtml(comparison));
  }
  return comparisonText(comparison);
}

/** Finished runs are compared for the seeds that all of them have. */
function seedsOf(sides: readonly Side[], wanted: readonly number[]): number[] {
  const finished = sides.flatMap((side) => (side.kind === 'reports' ? [side.reports] : []));
  const [first] = finished;
  const all = first === undefined ? wanted : [...first.keys()];
  const seeds = all.filter((seed) => finished.every((reports) => reports.has(seed)));
  if (seeds.length >= 2) return seeds.toSorted((a, b) => a - b);
  throw new ConfigError(
    `only ${seeds.length} seeds are on both sides: a confidence interval needs 2 or more`,
  );
}

async function reportOf(
  side: Side,
  seed: number,
  { providers, renters, days, out, name }: Run & { name: string },
): Promise<Report> {
  if (side.kind === 'reports') {
    const report = side.reports.get(seed);
    if (report === undefined) throw new ConfigError(`${side.path} has no run of seed ${seed}`);
    return report;
  }
  const { scenario, weightPolicy, policyName } = side;
  const { report } = await runWithReport({
    scenario,
    weightPolicy,
    policyName,
    seed,
    providers,
    renters,
    days,
    database: TEMPORARY_FILE,
  });
  if (out !== undefined) writeReport(join(out, `${name}-${seed}`), report);
  return report;
}

const outcomeOf = ({ run }: Report): string =>
  run.violation === null ? 'passed' : `FAILED (${run.violation.invariant})`;
