import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Facts } from '../parts/facts.tsx';
import { NumberField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { formatUsd } from '../parts/format.ts';
import { Outcome, useOutcome } from '../parts/outcome.tsx';
import { Panel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { mayDo } from '../renter/pod-actions.ts';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useAction } from '../session/queries.tsx';
import { AccessPanel } from './access.tsx';
import { EditTemplate } from './edit-template.tsx';
import { removalTime } from './removal-time.tsx';
import { ReportPod } from './report-pod.tsx';
import './pod.css';

const MAX_IDLE_MINUTES = 43_200;
const MAX_HOURS_AHEAD = 719;

/** Name, limits, removal, template and access of a pod. */
export function PodSettings({ pod }: PodTabProps) {
  if (!mayDo(pod.status, 'delete')) {
    return (
      <>
        <Panel title="Settings">
          <p className="empty">
            The pod is deleted, so nothing of it can be changed. Its metrics, backups, events and
            statement stay on the other tabs.
          </p>
        </Panel>
        <ReportPod pod={pod} />
      </>
    );
  }
  return (
    <div className="pod-forms">
      <Limits pod={pod} />
      <Removal pod={pod} />
      <EditTemplate pod={pod} />
      <AccessPanel pod={pod} />
      <ReportPod pod={pod} />
    </div>
  );
}

function Limits({ pod }: PodTabProps) {
  const update = useAction('PATCH /pods/{id}');
  const outcome = useOutcome();
  const form = useForm(
    {
      pod_name: pod.pod_name,
      max_spend_usd: pod.max_spend_usd,
      idle_shutdown_minutes: pod.idle_shutdown_minutes,
    },
    async (body) => {
      outcome.clear();
      await update.mutateAsync({ params: { id: pod.id }, body });
      outcome.show('Saved. The pod was not restarted.');
    },
  );
  return (
    <Panel title="Name and limits">
      <Form form={form} action="Save">
        <TextField form={form} name="pod_name" label="Name" maxLength={100} isRequired />
        <NumberField
          form={form}
          name="max_spend_usd"
          label="Budget"
          unit="USD"
          min={0}
          hint={`The pod stops when it has cost this much, and is deleted later unless you raise the budget. Spent so far: ${formatUsd(pod.spent_usd)}.`}
        />
        <NumberField
          form={form}
          name="idle_shutdown_minutes"
          label="Stop when idle for"
          unit="minutes"
          min={1}
          max={MAX_IDLE_MINUTES}
          step={1}
          hint="Minutes without use after which the pod stops. It is deleted later unless you set the limit again. Empty: never."
        />
      </Form>
      <Outcome>{outcome.text}</Outcome>
    </Panel>
  );
}

function Removal({ pod }: PodTabProps) {
  const schedule = useAction('POST /pods/{id}/schedule-removal');
  const cancel = useAction('DELETE /pods/{id}/schedule-removal');
  const outcome = useOutcome();
  const form = useForm(
    { hours: 24 as number | null },
    async ({ hours }) => {
      outcome.clear();
      await schedule.mutateAsync({
        params: { id: pod.id },
        body: { removal_scheduled_at: removalTime(hours ?? 0) },
      });
      outcome.show('The removal is scheduled.');
    },
    { removal_scheduled_at: 'hours' },
  );
  return (
    <Panel title="Scheduled removal">
      <p>
        At this time, the pod and its charges end. Files outside its volume and its backups are
        lost. You get a warning before.
      </p>
      {pod.removal_scheduled_at === null ? null : (
        <>
          <Facts facts={[['Removal', <Time key="at" value={pod.removal_scheduled_at} />]]} />
          <div>
            <ConfirmDialog
              trigger="Cancel the removal"
              title={`Cancel the scheduled removal of ${pod.pod_name}?`}
              action="Cancel the removal"
              onConfirm={async () => {
                await cancel.mutateAsync({ params: { id: pod.id } });
                outcome.show('The removal is cancelled.');
              }}
            >
              <p>The pod runs, and is charged, until you delete it.</p>
            </ConfirmDialog>
          </div>
        </>
      )}
      <Form form={form} action={pod.removal_scheduled_at === null ? 'Schedule' : 'Change the time'}>
        <NumberField
          form={form}
          name="hours"
          label="Remove in"
          unit="hours"
          min={1}
          max={MAX_HOURS_AHEAD}
          isRequired
        />
      </Form>
      <Outcome>{outcome.text}</Outcome>
    </Panel>
  );
}
