import type { PodMetricHistory } from '../api/api.gen.ts';
import { dateOf, parseApiTime } from '../browser/clock.ts';
import { Chart } from '../parts/chart.tsx';
import { formatDuration } from '../parts/format.ts';
import { QueryPanel } from '../parts/panel.tsx';
import { SimulatedMark } from '../parts/status.tsx';
import { Time, useNow } from '../parts/time.tsx';
import { type Check, oneOf } from '../parts/url-state.ts';
import { useUrlState } from '../parts/use-url-state.tsx';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useApi } from '../session/queries.tsx';
import {
  type ChartData,
  type Gap,
  gapsIn,
  gpuCharts,
  isMeasured,
  machineCharts,
  throttled,
} from './metric-charts.ts';
import { METRIC_RANGES, rangeOf, refetchMsOf, startOf } from './metric-ranges.ts';
import './pod.css';

const DEFAULTS = { range: '15m', gpu: 'all' };
const aGpu: Check = (text) =>
  /^(?:all|\d{1,4})$/.test(text) ? null : 'is neither all nor the number of a GPU';
const CHECKS = { range: oneOf(METRIC_RANGES.map((range) => range.key)), gpu: aGpu };
/** Gaps that are listed; more are counted. */
const LISTED_GAPS = 5;

/** History of a pod in charts. The address keeps range and GPU. */
export function PodMetrics({ pod }: PodTabProps) {
  const [{ range: key, gpu }, change] = useUrlState(DEFAULTS, CHECKS);
  const range = rangeOf(key);
  const from = dateOf(startOf(range, useNow(refetchMsOf(range)))).toISOString();
  const query = { from, resolution: range.resolution, per_gpu: true };
  const history = useApi('GET /pods/{id}/metrics', { params: { id: pod.id }, query });
  return (
    <QueryPanel
      title="Metrics"
      query={history}
      isEmpty={(data) => !isMeasured(data)}
      empty={<NoMetrics pod={pod} />}
      actions={
        <>
          <label className="row">
            Range
            <select value={range.key} onChange={({ target }) => change({ range: target.value })}>
              {METRIC_RANGES.map(({ key: each, label }) => (
                <option key={each} value={each}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          <label className="row">
            GPU
            <select value={gpu} onChange={({ target }) => change({ gpu: target.value })}>
              <option value="all">All GPUs</option>
              {(history.data?.gpus ?? []).map(({ index }) => (
                <option key={index} value={String(index)}>
                  GPU {index}
                </option>
              ))}
            </select>
          </label>
        </>
      }
    >
      {(data) => <Charts history={data} gpu={gpu} />}
    </QueryPanel>
  );
}

function NoMetrics({ pod }: PodTabProps) {
  return pod.status === 'RUNNING' ? (
    <p>No measurements in this range. The first ones arrive within a minute of the start.</p>
  ) : (
    <p>No measurements in this range. Choose a longer one: they are kept for 30 days.</p>
  );
}

function Charts({ history, gpu }: { history: PodMetricHistory; gpu: string }) {
  const times = history.timestamps.map((at) => (parseApiTime(at) ?? 0) / 1_000);
  const choice = gpu === 'all' ? 'all' : Number(gpu);
  const charts: ChartData[] = [...gpuCharts(history, choice), ...machineCharts(history)];
  return (
    <>
      <div className="row">
        <SimulatedMark isSimulated={history.simulated} />
        <span className="faint small">
          One value per {formatDuration(history.resolution * 1_000)}
        </span>
      </div>
      {history.stale ? (
        <p className="warn-text">The node does not answer: the newest measurements are missing.</p>
      ) : null}
      <Throttling history={history} />
      <Gaps gaps={gapsIn(times, history.samples)} />
      <div className="charts">
        {charts.map((chart) => (
          <Chart key={`${chart.title} ${chart.unit}`} {...chart} times={times} />
        ))}
      </div>
    </>
  );
}

function Throttling({ history }: { history: PodMetricHistory }) {
  const found = throttled(history);
  if (found === null || (found.heat === 0 && found.power === 0)) return null;
  return (
    <p className="warn-text">
      The GPUs reduced their clocks: by heat in up to {Math.round(found.heat)} % and by a power
      limit in up to {Math.round(found.power)} % of the samples of an interval.
    </p>
  );
}

function Gaps({ gaps }: { gaps: readonly Gap[] }) {
  if (gaps.length === 0) return null;
  return (
    <div className="small">
      <p>
        {gaps.length === 1 ? 'One period' : `${gaps.length} periods`} without measurements, which
        the charts leave empty:
      </p>
      <ul>
        {gaps.slice(-LISTED_GAPS).map(({ from, to }) => (
          <li key={from}>
            <Time value={dateOf(from * 1_000).toISOString()} /> for{' '}
            {formatDuration((to - from) * 1_000)}
          </li>
        ))}
      </ul>
    </div>
  );
}
