/** `compare.html`: differences of two scenarios, policies or sets of runs. Pure. */
import { intervalChart } from '../report/html/bars.ts';
import { pageHtml } from '../report/html/page.ts';
import { plotHtml, tableHtml } from '../report/html/section.ts';
import type { Plot } from '../report/html/svg.ts';
import { counted, escapeHtml, percent } from '../report/html/text.ts';
import type { ComparedFigure, Comparison } from './comparison.ts';
import {
  COMPARED_HEAD,
  comparedCells,
  METHOD,
  seedTable,
  verdictSentence,
} from './comparison-text.ts';
import { isClear, isEqual } from './paired.ts';

const PLOT = 'Relative differences';

export function comparisonHtml(comparison: Comparison): string {
  const { a, b, seeds, rows, runs } = comparison;
  const differing = rows.filter(({ difference }) => difference === null || !isEqual(difference));
  const equal = rows.filter((row) => !differing.includes(row));
  const title = `Comparison of ${a.name} (A) with ${b.name} (B)`;
  const verdicts = differing.map((row) => `<li>${escapeHtml(verdictSentence(row, a, b))}</li>`);
  return pageHtml(
    title,
    `<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(findingOf(comparison))}</p>
<p>${escapeHtml(runs)}, seeds ${seeds.join(', ')}.</p>
<p>A: ${escapeHtml(a.path)}<br>B: ${escapeHtml(b.path)}</p>
<p>${escapeHtml(METHOD(seeds.length))}</p>
<h2>Verdicts</h2>
<ul>${verdicts.join('\n')}</ul>
${equalText(equal)}
<h2>All figures</h2>
${tableHtml({ head: COMPARED_HEAD, rows: rows.map(comparedCells) })}
<details><summary>Values of each seed</summary>${tableHtml(seedTable(rows, seeds))}</details>
<h2>${PLOT}</h2>
<p>Mean difference and its 95 % interval, relative to A. Figures that are equal, or zero in A, are left out.</p>
<figure>${plotHtml(plotOf(differing), PLOT)}</figure>`,
  );
}

function findingOf({ rows, seeds, b }: Comparison): string {
  const clear = rows.filter(({ difference }) => difference !== null && isClear(difference));
  const equal = rows.filter(({ difference }) => difference !== null && isEqual(difference));
  const tried = `with ${counted(seeds.length, 'seed')}`;
  if (clear.length === 0) {
    return `No figure differs clearly ${tried}; ${equal.length} of ${rows.length} are equal.`;
  }
  const names = clear.map(({ figure, difference }) => {
    const direction = (difference?.mean ?? 0) > 0 ? 'higher' : 'lower';
    return `${figure.name} (${direction})`;
  });
  return `${counted(clear.length, 'figure')} of ${rows.length} differ clearly ${tried}, with ${b.name}: ${names.join('; ')}.`;
}

const equalText = (rows: readonly ComparedFigure[]): string =>
  rows.length === 0
    ? ''
    : `<p>Equal with every seed: ${escapeHtml(rows.map(({ figure }) => figure.name).join('; '))}.</p>`;

function plotOf(rows: readonly ComparedFigure[]): Plot {
  const intervals = rows.flatMap(({ figure, difference }) => {
    if (difference === null || difference.meanA === 0) return [];
    const { meanA, mean, low, high } = difference;
    const relative = (value: number) => value / Math.abs(meanA);
    return [{ label: figure.name, mean: relative(mean), low: relative(low), high: relative(high) }];
  });
  return intervalChart(intervals, { label: 'B compared with A', format: percent });
}
