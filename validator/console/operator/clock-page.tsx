import './clock.css';
import type { ClockState } from '../api/local-operations.ts';
import { parseApiTime } from '../browser/clock.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { Facts } from '../parts/facts.tsx';
import { SelectField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { formatDuration } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { useLocal, useLocalAction } from '../session/queries.tsx';
import { EventPanel } from './clock-events.tsx';
import { FaultForm, FaultPanel } from './clock-faults.tsx';

const REFETCH_MS = { advancing: 500, running: 1_000, paused: 2_000 } as const;
const TONES = { advancing: 'busy', running: 'good', paused: 'idle' } as const;
const HOUR_S = 3_600;
const ADVANCES = [
  { label: 'Advance 1 h', seconds: HOUR_S },
  { label: 'Advance 6 h', seconds: 6 * HOUR_S },
  { label: 'Advance 1 d', seconds: 24 * HOUR_S },
  { label: 'Advance 7 d', seconds: 168 * HOUR_S },
] as const;
const SPEEDS = [
  { value: '1', label: 'real time' },
  { value: '60', label: '1 min per second' },
  { value: '600', label: '10 min per second' },
  { value: '3600', label: '1 h per second' },
  { value: '86400', label: '1 d per second' },
];

/** Clock, faults and latest events of a simulated marketplace. */
export function ClockPage() {
  return (
    <Page
      title="Test clock"
      lead="The hosts, providers and renters of this marketplace are models. You decide when their time passes."
    >
      <ClockPanel />
      <FaultPanel />
      <FaultForm />
      <EventPanel />
    </Page>
  );
}

function ClockPanel() {
  const clock = useLocal('GET /_local/clock', {
    refetchMs: (data) => REFETCH_MS[data?.status ?? 'paused'],
  });
  // The state of the last answer may be out of date.
  const isSilent = clock.error !== null;
  return (
    <QueryPanel title="Clock" query={clock}>
      {(state) => (
        <>
          <p className="clock-time">
            <Time value={state.time} />
          </p>
          {state.violation === null ? null : (
            <p className="notice bad">The market violated an invariant: {state.violation}</p>
          )}
          {state.note === null ? null : <p className="notice">{state.note}</p>}
          <Facts
            facts={[
              [
                'State',
                isSilent ? (
                  <Status key="state" name="unknown: the server does not answer" tone="bad" />
                ) : (
                  <Status key="state" name={state.status} tone={TONES[state.status]} />
                ),
              ],
              ['Since the start', formatDuration(passedMs(state))],
              [
                'Advances until',
                <Time key="until" value={isSilent ? null : state.advances_until} />,
              ],
              ['Speed', state.speed === null ? '–' : `${state.speed} simulated seconds per second`],
              ['Events', state.events.toLocaleString('en-US')],
            ]}
          />
          <Controls isAdvancing={!isSilent && state.status === 'advancing'} />
        </>
      )}
    </QueryPanel>
  );
}

function passedMs({ time, started_at: start }: ClockState): number {
  return (parseApiTime(time) ?? 0) - (parseApiTime(start) ?? 0);
}

function Controls({ isAdvancing }: { isAdvancing: boolean }) {
  const change = useLocalAction('POST /_local/clock');
  const form = useForm({ speed: '60' }, ({ speed }) =>
    change.mutateAsync({ body: { action: 'run', speed: Number(speed) } }),
  );
  return (
    <>
      <div className="row">
        {ADVANCES.map(({ label, seconds }) => (
          <ActionButton
            key={label}
            label={label}
            isDisabled={isAdvancing}
            run={() => change.mutateAsync({ body: { action: 'advance', seconds } })}
          />
        ))}
        <ActionButton label="Pause" run={() => change.mutateAsync({ body: { action: 'pause' } })} />
      </div>
      <Form form={form} action="Let time pass">
        <SelectField form={form} name="speed" label="Speed" options={SPEEDS} isRequired />
      </Form>
    </>
  );
}
