import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Facts } from '../parts/facts.tsx';
import { NumberField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { mayDo } from '../renter/pod-actions.ts';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useAction, useApi } from '../session/queries.tsx';

const MAX_HOURS = 720;
const MAX_DAYS = 365;

/** The schedule of a pod's backups: shown if there is one, else a form that adds one. */
export function BackupSchedule({ pod }: PodTabProps) {
  const schedule = useApi('GET /backup-configs/pod/{pod_id}', { params: { pod_id: pod.id } });
  const remove = useAction('DELETE /backup-configs/{id}');
  return (
    <QueryPanel
      title="Backup schedule"
      query={schedule}
      isEmpty={(found) => found === null && !mayDo(pod.status, 'back-up')}
      empty="This pod has no schedule. Only a pod that runs or has stopped can have one."
    >
      {(found) =>
        found === null ? (
          <NewSchedule pod={pod} />
        ) : (
          <>
            <Facts
              facts={[
                ['Interval', `every ${found.backup_frequency_hours} h`],
                ['Folder', <code key="folder">{found.backup_path}</code>],
                ['Kept for', `${found.retention_days} days`],
                ['Next backup', <Time key="next" value={found.next_run_at} />],
              ]}
            />
            <div>
              <ConfirmDialog
                trigger="Delete the schedule"
                title={`Delete the backup schedule of ${pod.pod_name}?`}
                action="Delete"
                isDangerous
                onConfirm={() => remove.mutateAsync({ params: { id: found.id } })}
              >
                <p>No further backups are made. The present ones are kept as long as they show.</p>
              </ConfirmDialog>
            </div>
          </>
        )
      }
    </QueryPanel>
  );
}

function NewSchedule({ pod }: PodTabProps) {
  const create = useAction('POST /backup-configs');
  const form = useForm(
    {
      backup_frequency_hours: 24 as number | null,
      retention_days: 30 as number | null,
      backup_path: pod.template.volumes[0] ?? '/root',
    },
    ({ backup_frequency_hours: hours, retention_days: days, backup_path }) => {
      const body = {
        pod_id: pod.id,
        backup_frequency_hours: hours ?? 0,
        retention_days: days ?? 0,
        backup_path,
      };
      return create.mutateAsync({ body });
    },
  );
  return (
    <Form form={form} action="Add the schedule">
      <NumberField
        form={form}
        name="backup_frequency_hours"
        label="Interval"
        unit="hours"
        min={1}
        max={MAX_HOURS}
        step={1}
        isRequired
      />
      <NumberField
        form={form}
        name="retention_days"
        label="Keep each backup for"
        unit="days"
        min={1}
        max={MAX_DAYS}
        step={1}
        isRequired
      />
      <TextField
        form={form}
        name="backup_path"
        label="Folder"
        hint="Absolute path in the container, for example /workspace."
        isRequired
      />
    </Form>
  );
}
