import { useState } from 'react';
import { Dialog } from '../parts/dialog.tsx';
import { TextArea, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { QueryContent } from '../parts/panel.tsx';
import { useAction, useApi } from '../session/queries.tsx';
import { ChecksField } from './checks-field.tsx';

type KeyFieldProps = { chosen: string; onChange: (chosen: string) => void };

/** The account's SSH keys, with a dialog that adds one. */
export function KeyField({ chosen, onChange }: KeyFieldProps) {
  const keys = useApi('GET /ssh-keys', {});
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <QueryContent
        query={keys}
        isEmpty={({ length }) => length === 0}
        empty="You have no SSH key. Add one, because a pod needs at least one."
      >
        {(rows) => (
          <ChecksField
            legend="SSH keys"
            hint="Without a choice, the pod gets all your keys."
            options={rows.map(({ id, name }) => ({ value: id, label: name }))}
            chosen={chosen}
            onChange={onChange}
          />
        )}
      </QueryContent>
      <div className="row">
        <button type="button" onClick={() => setIsOpen(true)}>
          Add an SSH key
        </button>
      </div>
      <Dialog title="Add an SSH key" isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <NewKeyForm onDone={() => setIsOpen(false)} />
      </Dialog>
    </>
  );
}

function NewKeyForm({ onDone }: { onDone: () => void }) {
  const add = useAction('POST /ssh-keys');
  const form = useForm({ name: '', public_key: '' }, async (body) => {
    await add.mutateAsync({ body });
    onDone();
  });
  return (
    <Form form={form} action="Add the key">
      <TextField form={form} name="name" label="Name of the key" isRequired />
      <TextArea
        form={form}
        name="public_key"
        label="Public key"
        hint="The content of ~/.ssh/id_ed25519.pub. Never paste a private key."
        isRequired
      />
    </Form>
  );
}
