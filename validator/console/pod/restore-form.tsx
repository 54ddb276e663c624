import type { BackupLog } from '../api/api.gen.ts';
import { CheckboxField, SelectField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { QueryContent } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { mayDo } from '../renter/pod-actions.ts';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useAction, useApi } from '../session/queries.tsx';

type RestoreFormProps = PodTabProps & {
  backup: BackupLog;
  /** Called with the pod into which the restore runs. */
  onStarted: (podId: string) => void;
};

type Target = { id: string; pod_name: string };

/** Restores a backup into this pod or another running pod. */
export function RestoreForm(props: RestoreFormProps) {
  const pods = useApi('GET /pods', {});
  return (
    <QueryContent
      query={pods}
      isEmpty={(rows) => !rows.some(({ status }) => mayDo(status, 'restore'))}
      empty="No pod runs, into which the backup could be restored. Rent one first; the rental can also start with this backup."
    >
      {(rows) => (
        <Fields {...props} targets={rows.filter(({ status }) => mayDo(status, 'restore'))} />
      )}
    </QueryContent>
  );
}

function Fields({ backup, pod, onStarted, targets }: RestoreFormProps & { targets: Target[] }) {
  const restore = useAction('POST /pods/{pod_uuid}/restore');
  const first = targets.find(({ id }) => id === pod.id) ?? targets[0];
  const form = useForm(
    { target: first?.id ?? '', restore_path: backup.backup_path, mode: 'replace', salvage: false },
    async ({ target, restore_path, mode, salvage }) => {
      const request = {
        params: { pod_uuid: target },
        body: {
          backup_id: backup.id,
          restore_path,
          mode: mode === 'new_only' ? ('new_only' as const) : ('replace' as const),
          salvage,
        },
      };
      await restore.mutateAsync(request);
      onStarted(target);
    },
  );
  return (
    <Form form={form} action="Restore">
      <p>
        Backup of <code>{backup.backup_path}</code> from <Time value={backup.created_at} />.
      </p>
      <SelectField
        form={form}
        name="target"
        label="Pod"
        isRequired
        options={targets.map(({ id, pod_name: name }) => ({ value: id, label: name }))}
      />
      <TextField
        form={form}
        name="restore_path"
        label="Folder in the pod"
        hint="Absolute path, for example /workspace/restored."
        isRequired
      />
      <SelectField
        form={form}
        name="mode"
        label="Present content of the folder"
        isRequired
        hint={
          form.values.mode === 'replace'
            ? 'The restore deletes the present content of the folder when it has succeeded.'
            : 'The restore fails if the folder has content.'
        }
        options={[
          { value: 'replace', label: 'Replace it' },
          { value: 'new_only', label: 'Require a new or empty folder' },
        ]}
      />
      <CheckboxField
        form={form}
        name="salvage"
        label="Salvage a damaged backup"
        hint="Restores what can be read, and lists the rest. Without it, the restore of a damaged backup fails and changes nothing."
      />
    </Form>
  );
}
