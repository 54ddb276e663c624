/** `npm run simulate`: the marketplace in fast motion. */
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { naiveUtc, parseIsoTime } from '#shared/runtime/clock.ts';
import { exitStatusOf } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { DEFAULT_POLICY_FILE, readAnyWeightPolicy } from '../weights/weight-policy.ts';
import { compare } from './compare/compare.ts';
import type { Invariant } from './invariants/violations.ts';
import type { SimulateOptions, Until } from './options.ts';
import { parseCompareOptions, parseSimulateOptions, SIMULATE_HELP } from './options.ts';
import { dayLine } from './report/day-figures.ts';
import { nameOfFile, runWithReport } from './report/run-report.ts';
import { createOutFolder, writeReport } from './report/write-report.ts';
import { DEFAULT_SCENARIO, readScenario } from './scenarios/scenario.ts';
import { shrinkRun } from './shrink/shrink-run.ts';
import type { SimulationOptions, SimulationResult } from './simulation.ts';
import { sourceCommit } from './source-commit.ts';
import { describeObjects } from './story/objects.ts';
import { describePod } from './story/pod-records.ts';
import { createStoryTeller } from './story/pod-story.ts';
import { scenarioOfTraces } from './trace/scenario-of-traces.ts';
import type { World } from './world/world.ts';

const FAILED = 1;
const ROOT = join(import.meta.dirname, '..', '..');

async function run(argv: readonly string[]): Promise<number> {
  if (argv[0] === 'compare') {
    const options = parseCompareOptions(argv.slice(1));
    return printed(options) ?? print(await compare(options, print));
  }
  const options = parseSimulateOptions(argv);
  return printed(options) ?? (await simulate(options));
}

/** Prints what `--help` and `--version` ask for; null without them. */
function printed({ help, version }: Pick<SimulateOptions, 'help' | 'version'>): number | null {
  if (help) return print(SIMULATE_HELP);
  return version ? print(`${VERSION}\n`) : null;
}

async function simulate(options: SimulateOptions): Promise<number> {
  const { trace, until } = options;
  const given = readScenario(options.scenario ?? DEFAULT_SCENARIO);
  const scenario = trace.length === 0 ? given : await scenarioOfTraces(trace, given, options);
  const policyFile = options.policy ?? DEFAULT_POLICY_FILE;
  const weightPolicy = readAnyWeightPolicy(policyFile);
  const events = openEvents(options.out);
  const story = options.pod === undefined ? null : createStoryTeller(options.pod);
  const lines: string[] = [];
  const { result, report } = await runWithReport({
    ...options,
    scenario,
    weightPolicy,
    policyName: nameOfFile(policyFile),
    onEvent: events.write,
    observe: (event, atMs) => story?.record(event, atMs),
    ...endOf(until, parseIsoTime(scenario.starts_at) ?? 0),
    onDay: (figures) => print(`${dayLine(figures)}\n`),
    async inspect(world) {
      if (until !== undefined) lines.push(...(await describeObjects(world)));
      if (story === null) return;
      lines.push(...story.lines());
      if (story.pods().length === 0) lines.push(`no pod has the id or name ${options.pod}`);
      for (const pod of story.pods()) lines.push(...(await describePod(world.db, pod)));
    },
  });
  events.close();
  if (options.out !== undefined) writeReport(options.out, report);
  if (lines.length > 0) print(`${lines.join('\n')}\n`);
  const commit = await sourceCommit(ROOT, process.env['PATH'] ?? '');
  const status = conclude(options, { ...result, commit });
  if (result.violation !== null && options.shrink > 0) {
    const { invariant } = result.violation;
    const log = createLog({ name: 'simulate', level: 'silent' });
    const quiet = { log, onEvent: () => undefined, onDay: () => undefined };
    const run = { ...options, ...quiet, scenario, weightPolicy };
    await printSmallest(run, { ...options, invariant });
  }
  return status;
}

/** Prints the command of the smallest run that fails in the same way, and its scenario unless there is a file for it. */
async function printSmallest(
  run: SimulationOptions,
  { shrink, out, invariant, ...options }: SimulateOptions & { invariant: Invariant },
): Promise<void> {
  const onLine = (line: string) => print(`  ${line}\n`);
  const { scenario, ...size } = await shrinkRun(run, { invariant, maxRuns: shrink, onLine });
  const text = `${JSON.stringify(scenario, null, 2)}\n`;
  if (out === undefined) {
    print(
      `smallest run: ${commandOf({ ...options, ...size, trace: [], scenario: 'FILE' })}, with this FILE:\n${text}`,
    );
    return;
  }
  const file = join(out, 'smallest-scenario.json');
  writeFileSync(file, text);
  print(`smallest run: ${commandOf({ ...options, ...size, trace: [], scenario: file })}\n`);
}

function endOf(until: Until | undefined, startMs: number) {
  if (until === undefined) return {};
  if (until.kind === 'time') return { stopAtMs: startMs + until.afterMs };
  const { event } = until;
  return {
    isReached: ({ journal }: World) =>
      typeof event === 'number' ? journal.count() >= event : journal.countOf(event) > 0,
  };
}

/** `commit`: commit of the checkout; null for an installed package, which its version identifies. */
function conclude(
  options: SimulateOptions,
  { violation, events, hash, stopped, commit }: SimulationResult & { commit: string | null },
): number {
  const source = `version=${VERSION} commit=${commit ?? VERSION}`;
  const run = `seed=${options.seed} ${source} events=${events} hash=${hash}`;
  if (violation === null) return print(`${stopped ? 'STOPPED' : 'PASSED'} ${run}\n`);
  const { invariant, what, atMs, trace } = violation;
  print(
    [
      `FAILED ${run}`,
      `  ${invariant}: ${what}`,
      `  at ${naiveUtc(atMs)}, after ${violation.events} events`,
      `  repeat with: ${commandOf(options)}`,
      ...trace.map((line) => `  ${line}`),
      '',
    ].join('\n'),
  );
  return FAILED;
}

type Repeated = Pick<
  SimulateOptions,
  'providers' | 'renters' | 'days' | 'seed' | 'scenario' | 'policy' | 'trace'
>;

function commandOf(options: Repeated): string {
  const { providers, renters, days, seed, scenario, policy, trace } = options;
  const files = [
    ...(scenario === undefined ? [] : [`--scenario ${scenario}`]),
    ...(policy === undefined ? [] : [`--policy ${policy}`]),
    ...trace.map((file) => `--trace ${file}`),
  ];
  const size = `--providers ${providers} --renters ${renters} --days ${days} --seed ${seed}`;
  return ['npm run simulate --', size, ...files].join(' ');
}

function openEvents(folder: string | undefined): { write(line: string): void; close(): void } {
  if (folder === undefined) return { write: () => undefined, close: () => undefined };
  createOutFolder(folder);
  const file = openSync(join(folder, 'events.jsonl'), 'w');
  return { write: (line) => void writeSync(file, `${line}\n`), close: () => closeSync(file) };
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`podwright simulate: ${messageOf(error)}\n`);
  process.exitCode = exitStatusOf(error);
}
