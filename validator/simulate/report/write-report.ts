/** Files of a report in a folder. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reportHtml } from './html/report-html.ts';
import type { Report } from './report.ts';

export const REPORT_FILE = 'report.json';

/** Replaces an earlier report of the folder. */
export function writeReport(folder: string, report: Report): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, REPORT_FILE), `${JSON.stringify(report)}\n`);
  writeFileSync(join(folder, 'report.html'), reportHtml(report));
}
