/** `compare.html`: differences of two scenarios, policies or sets of runs. Pure. */
import { pageHtml } from '../report/html/page.ts';
import { tableHtml } from '../report/html/section.ts';
import { intervalChart } from '../report/html/svg.ts';
import { counted, escapeHtml, percent } from '../report/html/text.ts';
import type { ComparedFigure, Comparison } from './comparison.ts';
import { COMPARED_HEAD, comparedCells, METHOD } from './comparison-text.ts';
import { isClear, isEqual } from './paired.ts';

export function comparisonHtml({ a, b, seeds, rows }: Comparison): string {
  const clear = rows.filter(({ difference }) => difference !== null && isClear(difference));
  const equal = rows.filter(({ difference }) => difference !== null && isEqual(difference));
  const finding =
    clear.length === 0
      ? `No figure differs clearly with ${counted(seeds.length, 'seed')}; ${equal.length} of ${rows.length} are equal`
      : `${counted(clear.length, 'figure')} of ${rows.length} differ clearly: ${clear.map(({ figure }) => figure.name).join('; ')}`;
  return pageHtml(
    'Comparison of simulations',
    `<h1>${escapeHtml(finding)}</h1>
<p>A: ${escapeHtml(a)}<br>B: ${escapeHtml(b)}<br>Seeds: ${seeds.join(', ')}</p>
<p>${escapeHtml(METHOD(seeds.length))}</p>
${tableHtml({ head: COMPARED_HEAD, rows: rows.map(comparedCells) })}
<h2>Relative differences</h2>
<p>Mean difference and its 95 % interval, relative to A. Figures that are zero in A are left out.</p>
<figure>${plotOf(rows)}</figure>`,
  );
}

function plotOf(rows: readonly ComparedFigure[]): string {
  const intervals = rows.flatMap(({ figure, difference }) => {
    if (difference === null || difference.meanA === 0) return [];
    const { meanA, mean, low, high } = difference;
    const relative = (value: number) => value / Math.abs(meanA);
    return [{ label: figure.name, mean: relative(mean), low: relative(low), high: relative(high) }];
  });
  return intervalChart(intervals, { label: 'B compared with A', format: percent });
}
