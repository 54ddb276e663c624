import { dateOf, localOffsetMs, parseApiTime } from '../browser/clock.ts';
import { nowMs } from '../browser/server-time.ts';
import { oneOf } from '../parts/url-state.ts';
import { useUrlState } from '../parts/use-url-state.tsx';
import { DEFAULT_START, type LogStart, parseStart, STARTS } from './log-start.ts';
import { TIME_MODES, type TimeMode } from './log-times.ts';

export const OUTPUTS = ['all', 'stdout', 'stderr'] as const;
export type Output = (typeof OUTPUTS)[number];

/** Settings of the views of a page, which its address keeps. */
export type LogSettings = {
  /** A choice of `STARTS`, or a time in UTC. */
  start: string;
  times: TimeMode;
  output: Output;
  isWrapped: boolean;
};

const DEFAULTS = { start: DEFAULT_START, times: 'local', output: 'all', wrap: true };

/** A start that cannot be read is named at the view. */
const CHECKS = { times: oneOf(TIME_MODES), output: oneOf(OUTPUTS) };

export function useLogSettings(): [LogSettings, (change: Partial<LogSettings>) => void] {
  const [{ start, times, output, wrap }, change] = useUrlState(DEFAULTS, CHECKS);
  const settings: LogSettings = {
    start,
    times: TIME_MODES.find((mode) => mode === times) ?? 'local',
    output: OUTPUTS.find((each) => each === output) ?? 'all',
    isWrapped: wrap,
  };
  return [
    settings,
    ({ isWrapped, ...others }) =>
      change({ ...others, ...(isWrapped === undefined ? {} : { wrap: isWrapped }) }),
  ];
}

/** Returns the query for a start; null if the address has none that can be read. */
export function startOf(value: string): LogStart | null {
  const format = (epochMs: number) => dateOf(epochMs).toISOString();
  return parseStart(value, { nowMs: nowMs(), parse: parseApiTime, format });
}

const CUSTOM = 'time';
const MINUTE_CHARS = 16;

type SettingsProps = {
  settings: LogSettings;
  onChange: (change: Partial<LogSettings>) => void;
};

export function LogSettingsBar({ settings, onChange }: SettingsProps) {
  const { start, times, output, isWrapped } = settings;
  return (
    <div className="row log-settings">
      <StartFields start={start} onChange={(next) => onChange({ start: next })} />
      <label>
        Times{' '}
        <select
          value={times}
          onChange={({ target }) => onChange({ times: target.value as TimeMode })}
        >
          <option value="local">Local</option>
          <option value="utc">UTC</option>
          <option value="off">Off</option>
        </select>
      </label>
      <label>
        Output{' '}
        <select
          value={output}
          onChange={({ target }) => onChange({ output: target.value as Output })}
        >
          <option value="all">All</option>
          <option value="stdout">stdout</option>
          <option value="stderr">stderr</option>
        </select>
      </label>
      <label>
        <input
          type="checkbox"
          checked={isWrapped}
          onChange={({ target }) => onChange({ isWrapped: target.checked })}
        />{' '}
        Wrap lines
      </label>
    </div>
  );
}

function StartFields({ start, onChange }: { start: string; onChange: (start: string) => void }) {
  const isChoice = STARTS.some(({ value }) => value === start);
  const atMs = isChoice ? null : parseApiTime(start);
  const now = () => dateOf(nowMs()).toISOString();
  return (
    <>
      <label>
        Show{' '}
        <select
          value={isChoice ? start : CUSTOM}
          onChange={({ target }) => onChange(target.value === CUSTOM ? now() : target.value)}
        >
          {STARTS.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
          <option value={CUSTOM}>Since a time</option>
        </select>
      </label>
      {atMs === null ? null : (
        <label>
          Since (local time){' '}
          <input
            type="datetime-local"
            value={dateOf(atMs + localOffsetMs(atMs))
              .toISOString()
              .slice(0, MINUTE_CHARS)}
            onChange={({ target }) => {
              const localMs = target.valueAsNumber;
              if (Number.isNaN(localMs)) return;
              onChange(dateOf(localMs - localOffsetMs(localMs)).toISOString());
            }}
          />
        </label>
      )}
    </>
  );
}
