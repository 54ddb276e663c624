/** Plots with one row for each label: bars and intervals. The label is above its row, so that it is never cut. Pure. */
import { scaleLinear } from 'd3-scale';
import {
  type Axis,
  CHARACTER,
  COLOURS,
  domainOf,
  type Frame,
  framed,
  markOf,
  type Plot,
  round,
} from './svg.ts';
import { escapeHtml } from './text.ts';

export type Bar = { label: string; value: number; colour?: number };
export type Interval = { label: string; mean: number; low: number; high: number };

const TOP = 4;
const BOTTOM = 44;
const EDGE = 8;
const LINE_HEIGHT = 15;
const ROW = 14;
const GAP = 9;
/** Place for the value behind a bar. */
const VALUE = 96;

/** Horizontal bars with their labels and values. */
export function barChart(bars: readonly Bar[], x: Axis): Plot {
  const largest = Math.max(x.atLeast ?? 0, ...bars.map(({ value }) => value));
  return (frame) => {
    const along = scaleLinear([0, largest || 1], [EDGE, frame.width - VALUE]);
    const { rows, height } = stacked(bars, frame, ({ value, colour = 0 }, top) => {
      const width = round(Math.max(1, along(value) - EDGE));
      return [
        `<rect class="bar c${colour % COLOURS}" x="${EDGE}" y="${round(top)}" width="${width}" height="${ROW}"/>`,
        `<text class="label" x="${round(EDGE + width + 6)}" y="${round(top + ROW / 2)}" dy=".35em">${escapeHtml(x.format(value))}</text>`,
      ];
    });
    const title = `<text class="axis" x="${EDGE}" y="${height - 14}">${escapeHtml(x.label)}</text>`;
    return framed({ width: frame.width, height }, [...rows, title]);
  };
}

/** Horizontal intervals with their means, and a line at zero. */
export function intervalChart(intervals: readonly Interval[], x: Axis): Plot {
  const ends = intervals.flatMap(({ low, high }) => [low, high]);
  return (frame) => {
    const { width, ticks } = frame;
    // The middle of the first and the last tick is at the edge of the axis.
    const along = scaleLinear(domainOf(ends, x), [4 * EDGE, width - 4 * EDGE]).nice(ticks);
    const { rows, height } = stacked(intervals, frame, ({ mean, low, high }, top) => {
      const middle = round(top + ROW / 2);
      const path = `M${round(along(low))} ${middle}H${round(along(high))}`;
      return [`<path class="line c0" d="${path}"/>`, markOf(0, along(mean), middle)];
    });
    const bottom = height - BOTTOM;
    const zero = round(along(0));
    const numbers = along
      .ticks(ticks)
      .map(
        (value) =>
          `<text class="tick" x="${round(along(value))}" y="${bottom + 16}" text-anchor="middle">${escapeHtml(x.format(value))}</text>`,
      );
    return framed({ width, height }, [
      `<line class="grid" x1="${zero}" x2="${zero}" y1="${TOP}" y2="${bottom}"/>`,
      ...numbers,
      ...rows,
      `<text class="axis" x="${EDGE}" y="${height - 8}">${escapeHtml(x.label)}</text>`,
    ]);
  };
}

/** Returns the rows one below the other, each with its label, and the height of the plot. */
function stacked<Row extends { label: string }>(
  rows: readonly Row[],
  { width }: Frame,
  draw: (row: Row, top: number) => string[],
): { rows: string[]; height: number } {
  let top = TOP;
  const drawn = rows.flatMap((row) => {
    const lines = wrapped(row.label, Math.floor((width - 2 * EDGE) / CHARACTER));
    const texts = lines.map((text, index) => {
      const y = top + index * LINE_HEIGHT + 11;
      return `<text class="label" x="${EDGE}" y="${round(y)}">${escapeHtml(text)}</text>`;
    });
    const rowTop = top + lines.length * LINE_HEIGHT;
    top = rowTop + ROW + GAP;
    return [...texts, ...draw(row, rowTop)];
  });
  return { rows: drawn, height: top + BOTTOM };
}

/** Divides a text into lines of at most `most` characters, except for longer words. */
export function wrapped(text: string, most: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= most) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else lines.push(word);
  }
  return lines;
}
