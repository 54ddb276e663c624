import { useState } from 'react';
import type { CustomTemplateRequest, TemplateResponse } from '../api/api.gen.ts';
import { notSent } from '../api/failure.ts';
import { environmentText, readEnvironment, readPorts } from '../parts/container-text.ts';
import { Dialog } from '../parts/dialog.tsx';
import { TextArea, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { requireReadable } from '../parts/form-problems.ts';
import { Outcome, type OutcomeState, useOutcome } from '../parts/outcome.tsx';
import { Panel } from '../parts/panel.tsx';
import { TemplatePicker } from '../parts/template-picker.tsx';
import { mayDo } from '../renter/pod-actions.ts';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useAction } from '../session/queries.tsx';

type FormProps = PodTabProps & { onDone: (text: string) => void };

/** Changes what runs in the pod. Both ways restart the container. */
export function EditTemplate({ pod }: PodTabProps) {
  const [open, setOpen] = useState<'edit' | 'switch' | null>(null);
  const outcome = useOutcome();
  const done = finisher(outcome, () => setOpen(null));
  const isAllowed = mayDo(pod.status, 'change');
  return (
    <Panel title="Template">
      <p>
        {pod.template.name}: <code>{pod.template.docker_image}</code>
      </p>
      <div className="row">
        <button type="button" disabled={!isAllowed} onClick={() => setOpen('edit')}>
          Edit environment, image and ports
        </button>
        <button type="button" disabled={!isAllowed} onClick={() => setOpen('switch')}>
          Switch the template
        </button>
      </div>
      {isAllowed ? null : <p className="faint small">The pod must run before it can be changed.</p>}
      <Outcome>{outcome.text}</Outcome>
      <Dialog
        title={`Edit pod ${pod.pod_name}`}
        isOpen={open === 'edit'}
        onClose={() => setOpen(null)}
      >
        <EditForm pod={pod} onDone={done} />
      </Dialog>
      <Dialog
        title={`Switch the template of ${pod.pod_name}`}
        isOpen={open === 'switch'}
        onClose={() => setOpen(null)}
      >
        <SwitchForm pod={pod} onDone={done} />
      </Dialog>
    </Panel>
  );
}

function finisher(outcome: OutcomeState, close: () => void) {
  return (text: string) => {
    close();
    outcome.show(text);
  };
}

/** Warns what a restart with another content deletes. */
function Losses({ kept }: { kept: readonly string[] }) {
  return (
    <p className="warn-text">
      The container is replaced: its processes end, and{' '}
      {kept.length === 0 ? (
        'all files in it are lost.'
      ) : (
        <>
          all files are lost except those in <code>{kept.join(', ')}</code>.
        </>
      )}{' '}
      If the new container fails, the pod returns to the present one.
    </p>
  );
}

function EditForm({ pod, onDone }: FormProps) {
  const { template } = pod;
  const edit = useAction('PUT /pods/{id}');
  const form = useForm(
    {
      docker_image: template.docker_image,
      docker_image_tag: template.docker_image_tag,
      environment: environmentText(template.environment),
      internal_ports: template.internal_ports.join(', '),
      startup_commands: template.startup_commands,
    },
    async (values) => {
      const environment = readEnvironment(values.environment);
      const ports = readPorts(values.internal_ports);
      requireReadable({ environment, internal_ports: ports });
      const body: CustomTemplateRequest = {
        ...values,
        environment: environment.value,
        internal_ports: ports.value,
      };
      await edit.mutateAsync({ params: { id: pod.id }, body });
      onDone('The change is saved. The container restarts.');
    },
  );
  return (
    <Form form={form} action="Save and restart">
      <Losses kept={template.volumes} />
      <TextField form={form} name="docker_image" label="Image" isRequired />
      <TextField form={form} name="docker_image_tag" label="Tag" />
      <TextArea
        form={form}
        name="environment"
        label="Environment"
        hint="One NAME=value per line."
        rows={5}
      />
      <TextField
        form={form}
        name="internal_ports"
        label="Ports"
        hint="Ports in the container, for example 22, 8000. The pod keeps its number of ports."
      />
      <TextArea form={form} name="startup_commands" label="Start commands" rows={3} />
    </Form>
  );
}

function SwitchForm({ pod, onDone }: FormProps) {
  const change = useAction('PUT /pods/{id}/switch-template');
  const [chosen, setChosen] = useState<TemplateResponse | null>(null);
  const form = useForm({}, async () => {
    if (chosen === null) throw notSent('Choose a template.');
    await change.mutateAsync({ params: { id: pod.id }, body: { template_id: chosen.id } });
    onDone('The template is changed. The container restarts.');
  });
  const kept = pod.template.volumes.filter((path) => chosen?.volumes.includes(path));
  return (
    <Form form={form} action="Switch and restart">
      <Losses kept={kept} />
      <TemplatePicker chosenId={chosen?.id ?? ''} onChoose={setChosen} exceptId={pod.template_id} />
    </Form>
  );
}
