/** A section of a report: a finding in words, the plot that shows it, and a table with the exact values. Pure. */
import { COLOURS } from './svg.ts';
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
  /** The measured quantity with its unit, and the meaning of terms. */
  note: string;
  svg: string | null;
  /** Names of the colours of the plot, in their order; empty for one colour. */
  legend: readonly string[];
  table: Table;
};

/** Rows of a table beyond this number are left out, and their number is stated. */
const MAX_ROWS = 400;

export function sectionHtml({ id, finding, note, svg, legend, table }: Section): string {
  const figure =
    svg === null
      ? '<p class="empty">There is nothing to plot.</p>'
      : `<figure>${legendHtml(legend)}${labelled(svg, finding)}</figure>`;
  return `<section id="${escapeHtml(id)}"><h2>${escapeHtml(finding)}</h2><p>${escapeHtml(note)}</p>${figure}
<details><summary>Exact values</summary>${tableHtml(table)}</details></section>`;
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

function legendHtml(names: readonly string[]): string {
  if (names.length === 0) return '';
  const items = names.map(
    (name, index) =>
      `<li><svg viewBox="0 0 24 12" width="24" height="12" aria-hidden="true"><path class="line c${index % COLOURS}" d="M0 6H24"/></svg> ${escapeHtml(name)}</li>`,
  );
  return `<ul class="legend">${items.join('')}</ul>`;
}

/** Names the plot for readers who cannot see it; the table has its values. */
const labelled = (svg: string, finding: string): string =>
  svg.replace('<svg ', `<svg aria-label="${escapeHtml(finding)}" `);
