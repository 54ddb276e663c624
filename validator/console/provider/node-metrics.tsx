import type { NodeMetricHistory } from '../api/portal.gen.ts';
import { parseApiTime } from '../browser/clock.ts';
import { Chart } from '../parts/chart.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { SimulatedMark } from '../parts/status.tsx';
import { oneOf } from '../parts/url-state.ts';
import { useUrlState } from '../parts/use-url-state.tsx';
import { usePortal } from '../session/queries.tsx';
import type { NodeTabProps } from './node-page.tsx';

/** Periods that the server retains, by the seconds of one entry. */
const PERIODS = [
  { resolution: '10', title: '15 minutes' },
  { resolution: '60', title: '3 hours' },
  { resolution: '600', title: '30 days' },
] as const;
const DEFAULTS = { resolution: '60' };
const CHECKS = { resolution: oneOf(PERIODS.map(({ resolution }) => resolution)) };
const REFETCH_MS = 10_000;
const PERCENT = [0, 100] as const;
const GIB = 1_073_741_824;
const MIB = 1_048_576;

/** History of the node, also for times without pods. Gaps are intervals without measurements. */
export function NodeMetrics({ node: { id } }: NodeTabProps) {
  const [{ resolution: chosen }, change] = useUrlState(DEFAULTS, CHECKS);
  const { resolution } = PERIODS.find((period) => period.resolution === chosen) ?? PERIODS[1];
  const history = usePortal(
    'GET /executors/{id}/metrics',
    { params: { id }, query: { resolution } },
    { refetchMs: REFETCH_MS },
  );
  return (
    <QueryPanel
      title="Metrics"
      query={history}
      actions={
        <label className="row small">
          Period
          <select
            value={resolution}
            onChange={({ target }) => change({ resolution: target.value })}
          >
            {PERIODS.map((period) => (
              <option key={period.resolution} value={period.resolution}>
                {period.title}
              </option>
            ))}
          </select>
        </label>
      }
      isEmpty={({ data }) => data.samples.every((count) => count === 0)}
      empty="There are no measurements in this period. The agent reports them once the node has passed its checks."
    >
      {({ data }) => <Charts history={data} />}
    </QueryPanel>
  );
}

function Charts({ history }: { history: NodeMetricHistory }) {
  const times = history.timestamps.map((text) => (parseApiTime(text) ?? 0) / 1_000);
  const scaled = (values: readonly (number | null)[], unit: number) =>
    values.map((value) => (value === null ? null : value / unit));
  const { gpu_utilization: gpu, memory_utilization: memory } = history;
  return (
    <>
      {history.simulated ? (
        <p>
          <SimulatedMark isSimulated /> The GPUs of this node are simulated.
        </p>
      ) : null}
      {history.stale ? (
        <p className="warn-text">The latest measurements are missing: the agent does not report.</p>
      ) : null}
      <div className="charts">
        <Chart
          title="GPUs"
          unit="%"
          times={times}
          range={PERCENT}
          series={[
            { label: 'Mean of the GPUs', values: gpu.avg },
            { label: 'Busiest GPU', values: gpu.max },
            { label: 'GPU memory', values: memory.avg },
          ]}
        />
        <Chart
          title="Temperature of the GPUs"
          unit="°C"
          times={times}
          series={[
            { label: 'Mean', values: history.temperature_c.avg },
            { label: 'Hottest', values: history.temperature_c.max },
          ]}
        />
        <Chart
          title="Power of the GPUs"
          unit="W"
          times={times}
          series={[
            { label: 'Mean', values: history.power_draw_w.avg },
            { label: 'Highest', values: history.power_draw_w.max },
          ]}
        />
        <Chart
          title="Processors and memory"
          unit="%"
          times={times}
          range={PERCENT}
          series={[
            { label: 'Processors', values: history.cpu_utilization.avg },
            { label: 'Memory', values: history.ram_utilization.avg },
          ]}
        />
        <Chart
          title="Network"
          unit="MiB/s"
          times={times}
          series={[
            { label: 'Received', values: scaled(history.rx_bytes_per_second.avg, MIB) },
            { label: 'Sent', values: scaled(history.tx_bytes_per_second.avg, MIB) },
          ]}
        />
        <Chart
          title="Used disk"
          unit="GiB"
          times={times}
          series={[{ label: 'Used', values: scaled(history.disk_used_bytes.avg, GIB) }]}
        />
      </div>
    </>
  );
}
