/**
 * Plots as SVG text: axes, lines, points and frequencies. Colours come from classes, so that the page can follow the
 * reader's light or dark scheme. Each plot is drawn for wide and for narrow screens. Pure.
 */
import { scaleLinear } from 'd3-scale';
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

/** Size of a plot, in the pixels of its text. */
export type Frame = { width: number; height: number; ticks: number };

export const WIDE: Frame = { width: 760, height: 300, ticks: 6 };
export const NARROW: Frame = { width: 330, height: 260, ticks: 3 };

/** Draws a plot for a size of the screen. */
export type Plot = (frame: Frame) => string;

/** Time that a plot shades, in the unit of its horizontal axis, with the number that its legend explains. */
export type Band = { number: number; from: number; to: number };

/** Place for half of the last number of the axis. */
const RIGHT = 26;
const TOP = 18;
const BOTTOM = 44;
/** Place for the title of the vertical axis, and for a gap. */
const LABEL = 32;
/** Mean width of a character of the page's text in a plot. */
export const CHARACTER = 6.6;
const POINT_RADIUS = 3.5;
/** Smallest width of a band, so that a short one is visible. */
const MIN_BAND = 2;
/** Number of colours of the page. */
export const COLOURS = 8;

type Axes = { x: Axis; y: Axis };

/** Values over time, as steps: each value lasts until the next. */
export const stepChart = (
  series: readonly Series[],
  axes: Axes & { bands?: readonly Band[] },
): Plot => linesOf(series, { ...axes, curve: curveStepAfter });

/** Values of a continuous quantity. */
export const curveChart = (series: readonly Series[], axes: Axes): Plot =>
  linesOf(series, { ...axes, curve: curveLinear });

type Lines = Axes & { curve: typeof curveLinear; bands?: readonly Band[] };

function linesOf(series: readonly Series[], { curve, bands = [], ...axes }: Lines): Plot {
  const all = series.flatMap(({ points }) => points);
  return (frame) => {
    const scales = scalesOf(all, axes, frame);
    const draw = line<Point>(
      ([at]) => scales.x(at),
      ([, value]) => scales.y(value),
    ).curve(curve);
    const paths = series.map(
      ({ points }, index) =>
        `<path class="line c${index % COLOURS}" d="${draw([...points]) ?? ''}"/>`,
    );
    return framed(frame, [
      ...bands.flatMap((band) => bandOf(band, scales, frame)),
      ...axesOf(scales, axes, frame),
      ...paths,
    ]);
  };
}

/** Returns nothing for a band outside the axis. */
function bandOf({ number, from, to }: Band, { x }: Scales, frame: Frame): string[] {
  const [first = 0, last = 0] = x.domain();
  if (to < first || from > last) return [];
  const [left, right] = [x(Math.max(from, first)), x(Math.min(to, last))];
  const width = Math.max(MIN_BAND, right - left);
  return [
    `<rect class="band" x="${round(left)}" y="${TOP}" width="${round(width)}" height="${frame.height - BOTTOM - TOP}"/>`,
    `<text class="label" x="${round(left + width / 2)}" y="${TOP - 5}" text-anchor="middle">${number}</text>`,
  ];
}

/** Points of several groups; each group has a colour and a shape. */
export function scatterChart(groups: readonly Series[], axes: Axes): Plot {
  const all = groups.flatMap(({ points }) => points);
  return (frame) => {
    const scales = scalesOf(all, axes, frame);
    const marks = groups.flatMap(({ points }, index) =>
      points.map(([at, value]) => markOf(index, scales.x(at), scales.y(value))),
    );
    return framed(frame, [...axesOf(scales, axes, frame), ...marks]);
  };
}

export type Bin = { from: number; to: number; count: number };

/** Frequencies of equal bins. */
export function histogram(bins: readonly Bin[], axes: Axes): Plot {
  const ends = bins.flatMap(({ from, to, count }): Point[] => [
    [from, 0],
    [to, count],
  ]);
  return (frame) => {
    const scales = scalesOf(ends, axes, frame);
    const bars = bins.map(({ from, to, count }) => {
      const [left, right, top] = [scales.x(from), scales.x(to), scales.y(count)];
      return `<rect class="bar c0" x="${round(left)}" y="${round(top)}" width="${round(Math.max(0.5, right - left - 1))}" height="${round(frame.height - BOTTOM - top)}"/>`;
    });
    return framed(frame, [...axesOf(scales, axes, frame), ...bars]);
  };
}

type Scales = ReturnType<typeof scalesOf>;

/** The place for the vertical axis follows from the length of its numbers. */
function scalesOf(points: readonly Point[], { x, y }: Axes, frame: Frame) {
  const xs = points.map(([at]) => at);
  const ys = points.map(([, value]) => value);
  const up = scaleLinear(domainOf(ys, y), [frame.height - BOTTOM, TOP]).nice(frame.ticks);
  const longest = up
    .ticks(frame.ticks)
    .reduce((before, value) => Math.max(before, y.format(value).length), 0);
  const left = Math.round(LABEL + longest * CHARACTER);
  return { x: scaleLinear(domainOf(xs, x), [left, frame.width - RIGHT]), y: up, left };
}

/** Returns the ends of an axis, which includes zero. Without data, the axis has the length 1. */
export function domainOf(
  values: readonly number[],
  { atLeast = 0 }: Pick<Axis, 'atLeast'>,
): [number, number] {
  const low = values.reduce((before, value) => Math.min(before, value), 0);
  const high = values.reduce((before, value) => Math.max(before, value), Math.max(atLeast, 0));
  return low === high ? [low, low + 1] : [low, high];
}

function axesOf({ x: along, y: up, left }: Scales, { x, y }: Axes, frame: Frame): string[] {
  const { width, height, ticks } = frame;
  const bottom = height - BOTTOM;
  const horizontal = along
    .ticks(ticks)
    .map(
      (value) =>
        `<text class="tick" x="${round(along(value))}" y="${bottom + 16}" text-anchor="middle">${escapeHtml(x.format(value))}</text>`,
    );
  const vertical = up.ticks(ticks).map((value) => {
    const at = round(up(value));
    return [
      `<line class="grid" x1="${left}" x2="${width - RIGHT}" y1="${at}" y2="${at}"/>`,
      `<text class="tick" x="${left - 6}" y="${at}" dy=".35em" text-anchor="end">${escapeHtml(y.format(value))}</text>`,
    ].join('');
  });
  return [
    ...vertical,
    ...horizontal,
    `<text class="axis" x="${(left + width - RIGHT) / 2}" y="${height - 8}" text-anchor="middle">${escapeHtml(x.label)}</text>`,
    `<text class="axis" transform="translate(14 ${(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">${escapeHtml(y.label)}</text>`,
  ];
}

/** Groups differ by shape too, so that colour is not the only difference: circle, square, diamond. */
export function markOf(group: number, x: number, y: number): string {
  const className = `mark c${group % COLOURS}`;
  const r = POINT_RADIUS;
  const [left, top] = [round(x - r), round(y - r)];
  if (group % 3 === 0) {
    return `<circle class="${className}" cx="${round(x)}" cy="${round(y)}" r="${r}"/>`;
  }
  const turn = group % 3 === 2 ? ` transform="rotate(45 ${round(x)} ${round(y)})"` : '';
  return `<rect class="${className}" x="${left}" y="${top}" width="${2 * r}" height="${2 * r}"${turn}/>`;
}

export const framed = (
  { width, height }: Pick<Frame, 'width' | 'height'>,
  parts: readonly string[],
): string => `<svg viewBox="0 0 ${width} ${height}" role="img">${parts.join('')}</svg>`;

/** Coordinates have one decimal. */
export const round = (value: number): number => Math.round(value * 10) / 10;
