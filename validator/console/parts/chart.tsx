import { useEffect, useRef, useState } from 'react';
import type uPlot from 'uplot';
import { followTheme } from '../browser/follow-theme.ts';
import { load } from '../browser/load.ts';
import { summaryOf } from './chart-summary.ts';
import { FailureNotice } from './failure-notice.tsx';

export type Series = {
  label: string;
  /** One value per time; null for an interval without measurements, which the chart leaves empty. */
  values: readonly (number | null)[];
};

type ChartProps = {
  title: string;
  unit: string;
  /** Start of each interval, in seconds since the epoch. */
  times: readonly number[];
  series: readonly Series[];
  /** Fixed range of the axis; without it, the range of the values. */
  range?: readonly [min: number, max: number];
};

const HEIGHT_PX = 180;
const COLOURS = ['--series-1', '--series-2', '--series-3', '--series-4'];

/** Values over time. The library is loaded with the first chart. Screen readers get the extremes as text. */
export function Chart(props: ChartProps) {
  const { title, unit, series } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [error, setError] = useState<unknown>(null);
  const isEmpty = series.every(({ values }) => values.every((value) => value === null));
  const labels = series.map(({ label }) => label).join('\n');
  useEffect(() => {
    let isGone = false;
    const draw = async () => {
      const [{ default: UPlot }] = await Promise.all([
        load(() => import('uplot')),
        load(() => import('uplot/dist/uPlot.min.css')),
      ]);
      if (isGone || place.current === null || labels === '') return;
      plot.current?.destroy();
      const options = optionsOf(latest.current, place.current);
      plot.current = new UPlot(options, dataOf(latest.current), place.current);
    };
    draw().catch(setError);
    // The chart copies the colours of the theme.
    const endTheme = followTheme(() => void draw().catch(setError));
    const observer = new ResizeObserver(([entry]) => {
      plot.current?.setSize({ width: entry?.contentRect.width ?? 0, height: HEIGHT_PX });
    });
    if (place.current !== null) observer.observe(place.current);
    return () => {
      isGone = true;
      observer.disconnect();
      endTheme();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [labels]);
  useEffect(() => plot.current?.setData(dataOf(props)), [props]);
  return (
    <figure className="chart">
      <figcaption>
        {title} <span className="faint">({unit})</span>
      </figcaption>
      {error === null ? null : <FailureNotice error={error} />}
      {isEmpty ? <p className="empty">There are no values in this period.</p> : null}
      <div ref={place} aria-hidden="true" hidden={isEmpty} />
      <p className="hidden">
        {series.map((each) => summaryOf(each.label, each.values, unit)).join(' ')}
      </p>
    </figure>
  );
}

function dataOf({ times, series }: ChartProps): uPlot.AlignedData {
  return [[...times], ...series.map(({ values }) => [...values])];
}

function optionsOf({ unit, series, range }: ChartProps, place: HTMLElement): uPlot.Options {
  const style = getComputedStyle(place);
  const colour = (name: string) => style.getPropertyValue(name);
  const axis = {
    stroke: colour('--text-faint'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { stroke: colour('--line'), width: 1 },
  };
  return {
    width: place.clientWidth,
    height: HEIGHT_PX,
    series: [
      {},
      ...series.map(({ label }, at) => ({
        label: `${label} (${unit})`,
        stroke: colour(COLOURS[at % COLOURS.length] ?? ''),
        width: 1.5,
        spanGaps: false,
      })),
    ],
    axes: [axis, { ...axis, size: 56 }],
    ...(range === undefined ? {} : { scales: { y: { range: [...range] as [number, number] } } }),
  };
}
