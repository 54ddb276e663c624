import { useState } from 'react';
import { Dialog } from '../parts/dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useAction } from '../session/queries.tsx';

const EMPTY = { name: '', description: '' };

/** A button that opens the form of a new backup. */
export function BackupForm({ pod }: PodTabProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <button type="button" className="primary" onClick={() => setIsOpen(true)}>
        New backup
      </button>
      <Dialog
        title={`Back up pod ${pod.pod_name}`}
        isOpen={isOpen}
        onClose={() => setIsOpen(false)}
      >
        <NewBackup pod={pod} onStarted={() => setIsOpen(false)} />
      </Dialog>
    </>
  );
}

function NewBackup({ pod, onStarted }: PodTabProps & { onStarted: () => void }) {
  const backUp = useAction('POST /pods/{pod_id}/backup');
  const form = useForm(EMPTY, async ({ name, description }) => {
    const body = { name: name || null, description: description || null };
    await backUp.mutateAsync({ params: { pod_id: pod.id }, body });
    onStarted();
  });
  return (
    <Form form={form} action="Back up">
      <p>
        The pod keeps running. The backup has{' '}
        {pod.backup_config === null ? (
          'the first volume of the template, else the folder /root'
        ) : (
          <code>{pod.backup_config.backup_path}</code>
        )}
        .
      </p>
      <TextField form={form} name="name" label="Name" maxLength={200} />
      <TextField form={form} name="description" label="Description" maxLength={1_000} />
    </Form>
  );
}
