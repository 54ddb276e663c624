/** Values of groups over the time of a run: their plots, and the share of GPUs that was rented. Pure. */
import type { MarketSample } from '../report.ts';
import { ratio, sum } from '../statistics.ts';
import type { bandsOf } from './fault-bands.ts';
import type { Section } from './section.ts';
import { type Axis, type Series, stepChart } from './svg.ts';
import { number } from './text.ts';

export type Models = readonly (readonly [gpu: string, samples: readonly MarketSample[]])[];
/** Faults that plots shade. */
export type Shades = ReturnType<typeof bandsOf>;

const HOURS_PER_DAY = 24;
const DAYS: Axis = { label: 'days since the start', format: number };

type Sample = { at_hours: number; free_gpus: number; rented_gpus: number };
type Drawn = { axis: Axis; shades: Shades };

/** Draws one line for each group; samples without a value are left out. */
export function plotOf<Each extends Sample>(
  groups: readonly (readonly [name: string, samples: readonly Each[]])[],
  valueIn: (sample: Each) => number | null,
  { axis, shades }: Drawn,
): Pick<Section, 'plot' | 'legend' | 'bands'> {
  const series = groups.map(
    ([name, samples]): Series => ({
      name,
      points: samples.flatMap((sample) => {
        const value = valueIn(sample);
        return value === null ? [] : [[sample.at_hours / HOURS_PER_DAY, value] as const];
      }),
    }),
  );
  if (series.every(({ points }) => points.length === 0)) return { plot: null, legend: [] };
  return {
    plot: stepChart(series, { x: DAYS, y: axis, bands: shades.bands }),
    legend: series.map(({ name }) => name),
    bands: shades.meanings,
  };
}

/** Rented GPUs, also of hosts that fail inspection, and free GPUs of hosts that passed it. */
const rentable = ({ rented_gpus: rented, free_gpus: free }: Sample): number => rented + free;

export const shareRented = (sample: Sample): number | null =>
  ratio(sample.rented_gpus, rentable(sample));

/** Rented GPU hours by rentable GPU hours. */
export const occupancyOf = (samples: readonly Sample[]): number =>
  ratio(sum(samples.map(({ rented_gpus: rented }) => rented)), sum(samples.map(rentable))) ?? 0;
