/**
 * Plots as SVG text: axes, lines, bars and points. Colours come from classes, so that the page can follow the reader's
 * light or dark scheme. Pure.
 */
import { scaleBand, scaleLinear } from 'd3-scale';
import { curveLinear, curveStepAfter, line } from 'd3-shape';
import { escapeHtml } from './text.ts';

export type Point = readonly [x: number, y: number];
export type Series = { name: string; points: readonly Point[] };
export type Axis = {
  /** Quantity with its unit. */
  label: string;
  format(value: number): string;
  /** Smallest upper end of the axis; the data may extend it. */
  atLeast?: number;
};

const WIDTH = 760;
const HEIGHT = 300;
const LEFT = 76;
const RIGHT = 16;
const TOP = 10;
const BOTTOM = 44;
const TICKS = 6;
const BAR_HEIGHT = 24;
const BAR_LABEL = 310;
/** Longer labels are cut; the table has the whole text. */
const MAX_LABEL = 48;
const INTERVAL_LABEL = 300;
const BAR_VALUE = 90;
const POINT_RADIUS = 3.5;
/** Number of colours of the page. */
export const COLOURS = 8;

/** Values over time, as steps: each value lasts until the next. */
export const stepChart = (series: readonly Series[], x: Axis, y: Axis): string =>
  linesOf(series, { x, y, curve: curveStepAfter });

/** Values of a continuous quantity. */
export const curveChart = (series: readonly Series[], x: Axis, y: Axis): string =>
  linesOf(series, { x, y, curve: curveLinear });

type Lines = { x: Axis; y: Axis; curve: typeof curveLinear };

function linesOf(series: readonly Series[], { x, y, curve }: Lines): string {
  const all = series.flatMap(({ points }) => points);
  const scales = scalesOf(all, { x, y });
  const draw = line<Point>(
    ([at]) => scales.x(at),
    ([, value]) => scales.y(value),
  ).curve(curve);
  const paths = series.map(
    ({ points }, index) =>
      `<path class="line c${index % COLOURS}" d="${draw([...points]) ?? ''}"/>`,
  );
  return framed(HEIGHT, [...axesOf(scales, { x, y }), ...paths]);
}

/** Points of several groups; each group has a colour and a shape. */
export function scatterChart(groups: readonly Series[], x: Axis, y: Axis): string {
  const all = groups.flatMap(({ points }) => points);
  const scales = scalesOf(all, { x, y });
  const marks = groups.flatMap(({ points }, index) =>
    points.map(([at, value]) => markOf(index, scales.x(at), scales.y(value))),
  );
  return framed(HEIGHT, [...axesOf(scales, { x, y }), ...marks]);
}

export type Bin = { from: number; to: number; count: number };

/** Frequencies of equal bins. */
export function histogram(bins: readonly Bin[], x: Axis, y: Axis): string {
  const ends = bins.flatMap(({ from, to, count }): Point[] => [
    [from, 0],
    [to, count],
  ]);
  const scales = scalesOf(ends, { x, y });
  const bars = bins.map(({ from, to, count }) => {
    const [left, right, top] = [scales.x(from), scales.x(to), scales.y(count)];
    return `<rect class="bar c0" x="${round(left)}" y="${round(top)}" width="${round(Math.max(0.5, right - left - 1))}" height="${round(HEIGHT - BOTTOM - top)}"/>`;
  });
  return framed(HEIGHT, [...axesOf(scales, { x, y }), ...bars]);
}

export type Bar = { label: string; value: number; colour?: number };

/** Horizontal bars with their labels and values. */
export function barChart(bars: readonly Bar[], x: Axis): string {
  const height = TOP + bars.length * BAR_HEIGHT + BOTTOM;
  const largest = Math.max(x.atLeast ?? 0, ...bars.map(({ value }) => value));
  const along = scaleLinear([0, largest || 1], [BAR_LABEL, WIDTH - BAR_VALUE]);
  const down = scaleBand(
    bars.map((_, index) => index),
    [TOP, height - BOTTOM],
  ).padding(0.25);
  const rows = bars.map(({ label, value, colour = 0 }, index) => {
    const [top, thickness] = [down(index) ?? 0, down.bandwidth()];
    const middle = round(top + thickness / 2);
    const width = round(Math.max(1, along(value) - BAR_LABEL));
    return [
      `<text class="label" x="${BAR_LABEL - 8}" y="${middle}" text-anchor="end" dy=".35em">${escapeHtml(shortened(label))}</text>`,
      `<rect class="bar c${colour % COLOURS}" x="${BAR_LABEL}" y="${round(top)}" width="${width}" height="${round(thickness)}"/>`,
      `<text class="label" x="${round(BAR_LABEL + width + 6)}" y="${middle}" dy=".35em">${escapeHtml(x.format(value))}</text>`,
    ].join('');
  });
  const title = `<text class="axis" x="${BAR_LABEL}" y="${height - 14}">${escapeHtml(x.label)}</text>`;
  return framed(height, [...rows, title]);
}

export type Interval = { label: string; mean: number; low: number; high: number };

/** Horizontal intervals with their means, and a line at zero. */
export function intervalChart(intervals: readonly Interval[], x: Axis): string {
  const height = TOP + intervals.length * BAR_HEIGHT + BOTTOM;
  const ends = intervals.flatMap(({ low, high }) => [low, high]);
  const along = scaleLinear(domainOf(ends, x), [INTERVAL_LABEL, WIDTH - RIGHT]).nice(TICKS);
  const bottom = height - BOTTOM;
  const zero = round(along(0));
  const ticks = along
    .ticks(TICKS)
    .map(
      (value) =>
        `<text class="tick" x="${round(along(value))}" y="${bottom + 16}" text-anchor="middle">${escapeHtml(x.format(value))}</text>`,
    );
  const rows = intervals.map(({ label, mean, low, high }, index) => {
    const y = TOP + (index + 0.5) * BAR_HEIGHT;
    return [
      `<text class="label" x="${INTERVAL_LABEL - 8}" y="${y}" text-anchor="end" dy=".35em">${escapeHtml(label)}</text>`,
      `<path class="line c0" d="M${round(along(low))} ${y}H${round(along(high))}"/>`,
      markOf(0, along(mean), y),
    ].join('');
  });
  return framed(height, [
    `<line class="grid" x1="${zero}" x2="${zero}" y1="${TOP}" y2="${bottom}"/>`,
    ...ticks,
    ...rows,
    `<text class="axis" x="${INTERVAL_LABEL}" y="${height - 8}">${escapeHtml(x.label)}</text>`,
  ]);
}

type Scales = ReturnType<typeof scalesOf>;

function scalesOf(points: readonly Point[], { x, y }: { x: Axis; y: Axis }) {
  const xs = points.map(([at]) => at);
  const ys = points.map(([, value]) => value);
  return {
    x: scaleLinear(domainOf(xs, x), [LEFT, WIDTH - RIGHT]),
    y: scaleLinear(domainOf(ys, y), [HEIGHT - BOTTOM, TOP]).nice(TICKS),
  };
}

/** Axes include zero. Without data, the axis has the length 1. */
function domainOf(values: readonly number[], { atLeast = 0 }: Axis): [number, number] {
  const low = values.reduce((before, value) => Math.min(before, value), 0);
  const high = values.reduce((before, value) => Math.max(before, value), Math.max(atLeast, 0));
  return low === high ? [low, low + 1] : [low, high];
}

function axesOf({ x: along, y: up }: Scales, { x, y }: { x: Axis; y: Axis }): string[] {
  const bottom = HEIGHT - BOTTOM;
  const horizontal = along
    .ticks(TICKS)
    .map(
      (value) =>
        `<text class="tick" x="${round(along(value))}" y="${bottom + 16}" text-anchor="middle">${escapeHtml(x.format(value))}</text>`,
    );
  const vertical = up.ticks(TICKS).map((value) => {
    const at = round(up(value));
    return [
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}"/>`,
      `<text class="tick" x="${LEFT - 6}" y="${at}" dy=".35em" text-anchor="end">${escapeHtml(y.format(value))}</text>`,
    ].join('');
  });
  return [
    ...vertical,
    ...horizontal,
    `<text class="axis" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 8}" text-anchor="middle">${escapeHtml(x.label)}</text>`,
    `<text class="axis" transform="translate(14 ${(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">${escapeHtml(y.label)}</text>`,
  ];
}

/** Groups differ by shape too, so that colour is not the only difference: circle, square, diamond. */
function markOf(group: number, x: number, y: number): string {
  const className = `mark c${group % COLOURS}`;
  const r = POINT_RADIUS;
  const [left, top] = [round(x - r), round(y - r)];
  if (group % 3 === 0) {
    return `<circle class="${className}" cx="${round(x)}" cy="${round(y)}" r="${r}"/>`;
  }
  const turn = group % 3 === 2 ? ` transform="rotate(45 ${round(x)} ${round(y)})"` : '';
  return `<rect class="${className}" x="${left}" y="${top}" width="${2 * r}" height="${2 * r}"${turn}/>`;
}

const framed = (height: number, parts: readonly string[]): string =>
  `<svg viewBox="0 0 ${WIDTH} ${height}" role="img">${parts.join('')}</svg>`;

const shortened = (label: string): string =>
  label.length > MAX_LABEL ? `${label.slice(0, MAX_LABEL - 1)}…` : label;

const round = (value: number): number => Math.round(value * 10) / 10;
