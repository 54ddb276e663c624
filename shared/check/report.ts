/** Findings as lines for people or as JSON for programs. Pure. */
import { FINDING_STATUSES, type Finding, type FindingStatus } from './finding.ts';

const COLOURS: Record<FindingStatus, number> = { ok: 32, warn: 33, fail: 31, unknown: 36 };
const STATUS_WIDTH = 'unknown'.length;
/** Words of other programs are quoted up to here. */
const MAX_CHARS = 500;

/** A line for each finding, one for its remedy, and a summary. */
export function textReport(findings: readonly Finding[], colours: boolean): string {
  const width = Math.max(...findings.map(({ id }) => id.length));
  const lines = findings.flatMap(({ id, status, finding, remedy }) => {
    const padded = status.padEnd(STATUS_WIDTH);
    const shown = colours ? `\u001b[${COLOURS[status]}m${padded}\u001b[0m` : padded;
    const first = `${shown}  ${id.padEnd(width)}  ${plain(finding)}`;
    return remedy === null ? [first] : [first, `${' '.repeat(STATUS_WIDTH)}  → ${plain(remedy)}`];
  });
  const counts = FINDING_STATUSES.map(
    (status) => `${findings.filter((finding) => finding.status === status).length} ${status}`,
  );
  return `${[...lines, '', counts.join(', ')].join('\n')}\n`;
}

export function jsonReport(findings: readonly Finding[]): string {
  return `${JSON.stringify(findings, null, 2)}\n`;
}

/** What other programs said goes to a terminal: one line, no control characters, no novels. */
function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').slice(0, MAX_CHARS);
}
