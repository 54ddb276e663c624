/** A section of a report: a finding in words, the plot that shows it, and a table with the exact values. Pure. */
import { COLOURS, markOf, NARROW, type Plot, WIDE } from './svg.ts';
import { escapeHtml } from './text.ts';

export type Table = {
  head: readonly string[];
  rows: readonly (readonly string[])[];
};

export type Section = {
  /** Stable, for links. */
  id: string;
  /** The finding as a sentence. */
  finding: string;
  /** The measured quantity with its unit, and the meaning of terms. Each paragraph is one element. */
  notes: readonly string[];
  /** Null if there is nothing to plot. */
  plot: Plot | null;
  /** Names of the colours of the plot, in their order; empty for one colour. */
  legend: readonly string[];
  /** True if the plot has marks instead of lines. */
  hasMarks?: boolean;
  /** Meaning of the numbered bands of the plot; empty without bands. */
  bands?: readonly string[];
  /** Tables that the page shows at once, with their captions. */
  openTables?: readonly { caption: string; table: Table }[];
  /** Exact values, which the reader unfolds; empty if the other tables have them. */
  table: Table;
};

/** Rows of a table beyond this number are left out, and their number is stated. */
const MAX_ROWS = 400;

/** Returns true for a section whose finding is all that there is to report. */
export const isEmpty = ({ plot, table, openTables = [] }: Section): boolean =>
  plot === null && table.rows.length === 0 && openTables.length === 0;

export function sectionHtml(section: Section): string {
  const { id, finding, notes, plot, bands = [], openTables = [], table } = section;
  const text = notes.map((note) => `<p>${escapeHtml(note)}</p>`).join('');
  const figure =
    plot === null
      ? ''
      : `<figure>${legendHtml(section)}${plotHtml(plot, finding)}${bandsHtml(bands)}</figure>`;
  const open = openTables.map(
    (each) => `<h3>${escapeHtml(each.caption)}</h3>${tableHtml(each.table)}`,
  );
  const folded =
    table.rows.length === 0
      ? ''
      : `<details><summary>Exact values</summary>${tableHtml(table)}</details>`;
  return `<section id="${escapeHtml(id)}"><h2>${escapeHtml(finding)}</h2>${text}${figure}
${open.join('\n')}${folded}</section>`;
}

/** Returns the plot for wide and for narrow screens, of which the page shows one. `label` names it for readers who cannot see it. */
export function plotHtml(plot: Plot, label: string): string {
  const named = (svg: string) => svg.replace('<svg ', `<svg aria-label="${escapeHtml(label)}" `);
  return `<div class="wide">${named(plot(WIDE))}</div><div class="narrow">${named(plot(NARROW))}</div>`;
}

export function tableHtml({ head, rows }: Table): string {
  const cells = (tag: 'th' | 'td', row: readonly string[]) =>
    row
      .map((cell) => `<${tag}${tag === 'th' ? ' scope="col"' : ''}>${escapeHtml(cell)}</${tag}>`)
      .join('');
  const body = rows.slice(0, MAX_ROWS).map((row) => `<tr>${cells('td', row)}</tr>`);
  const more = rows.length - MAX_ROWS;
  const note = more > 0 ? `<p>${more} more rows are in report.json.</p>` : '';
  return `<div class="scroll"><table><thead><tr>${cells('th', head)}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>${note}`;
}

function legendHtml({ legend, hasMarks = false }: Section): string {
  if (legend.length === 0) return '';
  const items = legend.map((name, index) => {
    const sample = hasMarks
      ? markOf(index, 12, 6)
      : `<path class="line c${index % COLOURS}" d="M0 6H24"/>`;
    return `<li><svg viewBox="0 0 24 12" width="24" height="12" aria-hidden="true">${sample}</svg> ${escapeHtml(name)}</li>`;
  });
  return `<ul class="legend">${items.join('')}</ul>`;
}

const bandsHtml = (bands: readonly string[]): string =>
  bands.length === 0 ? '' : `<figcaption>Shaded: ${escapeHtml(bands.join('; '))}.</figcaption>`;
