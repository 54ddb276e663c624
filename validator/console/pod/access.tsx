import { Link } from 'wouter';
import type { ApiOperations } from '../api/api.gen.ts';
import { NumberField, SelectField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Outcome, useOutcome } from '../parts/outcome.tsx';
import { Panel, QueryContent } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { mayDo } from '../renter/pod-actions.ts';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useAction, useApi } from '../session/queries.tsx';

type SshKeys = ApiOperations['GET /ssh-keys']['response'];

const NOTEBOOK_PORT = 8888;
const MAX_PORT = 65_535;

/** SSH keys and the notebook server of a pod. */
export function AccessPanel({ pod }: PodTabProps) {
  const keys = useApi('GET /ssh-keys', {});
  const others = (rows: SshKeys) =>
    rows.filter(({ id }) => !pod.ssh_keys.some((key) => key.id === id));
  return (
    <Panel title="Access">
      {pod.ssh_keys.length === 0 ? (
        <p>The pod has no SSH key.</p>
      ) : (
        <p>SSH keys of the pod: {pod.ssh_keys.map(({ name }) => name).join(', ')}.</p>
      )}
      <QueryContent
        query={keys}
        isEmpty={(rows) => others(rows).length === 0}
        empty={
          <p>
            The pod has all your keys. <Link href={paths.sshKeys}>Add a key to your account</Link>{' '}
            to choose it here.
          </p>
        }
      >
        {(rows) => <AddKey pod={pod} keys={others(rows)} />}
      </QueryContent>
      <Notebook pod={pod} />
    </Panel>
  );
}

function AddKey({ pod, keys }: PodTabProps & { keys: SshKeys }) {
  const add = useAction('POST /pods/{id}/multiple-ssh-keys');
  const outcome = useOutcome();
  const form = useForm({ ssh_key_ids: keys[0]?.id ?? '' }, async ({ ssh_key_ids: id }) => {
    outcome.clear();
    await add.mutateAsync({ params: { id: pod.id }, body: { ssh_key_ids: [id] } });
    outcome.show('The key was added, without a restart.');
  });
  return (
    <>
      <Form form={form} action="Add the key">
        <SelectField
          form={form}
          name="ssh_key_ids"
          label="SSH key"
          isRequired
          options={keys.map(({ id, name }) => ({ value: id, label: name }))}
        />
      </Form>
      <Outcome>{outcome.text}</Outcome>
    </>
  );
}

function Notebook({ pod }: PodTabProps) {
  const install = useAction('POST /pods/{id}/install-jupyter');
  const outcome = useOutcome();
  const form = useForm(
    { jupyter_internal_port: NOTEBOOK_PORT as number | null },
    async ({ jupyter_internal_port: port }) => {
      outcome.clear();
      await install.mutateAsync({
        params: { id: pod.id },
        body: { jupyter_internal_port: port ?? 0 },
      });
      outcome.show('The node installs the notebook server. Its link appears on the overview.');
    },
  );
  if (pod.jupyter_url !== null) {
    return (
      <p>
        <a href={pod.jupyter_url} rel="noreferrer" target="_blank">
          Open the notebook
        </a>
      </p>
    );
  }
  if (!mayDo(pod.status, 'install-notebook')) return null;
  return (
    <>
      <Form form={form} action="Install a notebook server">
        <NumberField
          form={form}
          name="jupyter_internal_port"
          label="Port of the notebook in the pod"
          min={1}
          max={MAX_PORT}
          step={1}
          hint="It must be one of the ports of the pod."
          isRequired
        />
      </Form>
      <Outcome>{outcome.text}</Outcome>
    </>
  );
}
