/** Sides of a comparison: a scenario, a weight policy, or the reports of finished runs. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigError } from '#shared/runtime/config.ts';
import { fileProblem } from '#shared/runtime/files.ts';
import {
  DEFAULT_POLICY_FILE,
  readAnyWeightPolicy,
  type WeightPolicy,
} from '../../weights/weight-policy.ts';
import { type Report, readReport } from '../report/report.ts';
import { nameOfFile } from '../report/run-report.ts';
import { REPORT_FILE } from '../report/write-report.ts';
import { DEFAULT_SCENARIO, readScenario, type Scenario } from '../scenarios/scenario.ts';

export type Side =
  | {
      kind: 'run';
      path: string;
      scenario: Scenario;
      weightPolicy: WeightPolicy;
      policyName: string;
    }
  | { kind: 'reports'; path: string; reports: ReadonlyMap<number, Report> };

const MAX_RUNS = 100;
const MAX_FILE_BYTES = 1_000_000;
/** Field that only weight policies have. */
const Policy = z.looseObject({ pools_ppm: z.unknown() });

/** `scenario`: file of the scenario for a weight policy. Throws ConfigError if the path has none of the three. */
export function readSide(path: string, scenario: string = DEFAULT_SCENARIO): Side {
  if (isFolder(path)) return { kind: 'reports', path, reports: readReports(path) };
  const isPolicy = Policy.safeParse(readJson(path)).data?.pools_ppm !== undefined;
  const policy = isPolicy ? path : DEFAULT_POLICY_FILE;
  return {
    kind: 'run',
    path,
    scenario: readScenario(isPolicy ? scenario : path),
    weightPolicy: readAnyWeightPolicy(policy),
    policyName: nameOfFile(policy),
  };
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw new ConfigError(fileProblem(path, error), { cause: error });
  }
}

function readJson(path: string): unknown {
  try {
    const text = readFileSync(path, 'utf8');
    if (text.length > MAX_FILE_BYTES) throw new Error(`longer than ${MAX_FILE_BYTES} bytes`);
    return JSON.parse(text);
  } catch (error) {
    throw new ConfigError(fileProblem(path, error), { cause: error });
  }
}

/** Reads the report of the folder, or those of its folders, by seed. */
function readReports(folder: string): Map<number, Report> {
  const entries = readdirSync(folder, { withFileTypes: true });
  const folders = entries.some(({ name }) => name === REPORT_FILE)
    ? [folder]
    : entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
  if (folders.length === 0 || folders.length > MAX_RUNS) {
    throw new ConfigError(
      `${folder} has ${folders.length} runs: name a folder that --out has written, or a folder of 1 to ${MAX_RUNS} such folders`,
    );
  }
  const reports = folders.map((each) => readReport(join(each, REPORT_FILE)));
  const bySeed = new Map(reports.map((report) => [report.run.seed, report]));
  if (bySeed.size < reports.length) throw new ConfigError(`${folder} has two runs of one seed`);
  return bySeed;
}
