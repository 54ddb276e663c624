/** Files of a report in a folder. */
import { accessSync, constants, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '#shared/runtime/config.ts';
import { hasCode, messageOf } from '#shared/runtime/errors.ts';
import { reportHtml } from './html/report-html.ts';
import type { Report } from './report.ts';

export const REPORT_FILE = 'report.json';

/** Creates the folder of `--out`. Throws ConfigError with a remedy if the process cannot write to it. */
export function createOutFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true });
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new ConfigError(`--out: ${outProblem(path, cause)}`, { cause });
  }
}

function outProblem(path: string, error: unknown): string {
  if (hasCode(error, 'EEXIST') || hasCode(error, 'ENOTDIR')) {
    return `${path} is a file, or in a file. Name a folder; it is created if it is missing.`;
  }
  if (hasCode(error, 'EACCES')) return `this user may not write to ${path}. Name another folder.`;
  return `${path} cannot be written: ${messageOf(error)}. Name another folder.`;
}

/** Replaces an earlier report of the folder. */
export function writeReport(folder: string, report: Report): void {
  createOutFolder(folder);
  writeFileSync(join(folder, REPORT_FILE), `${JSON.stringify(report)}\n`);
  writeFileSync(join(folder, 'report.html'), reportHtml(report));
}
