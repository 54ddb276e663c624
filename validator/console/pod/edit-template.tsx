import { useState } from 'react';
import type { CustomTemplateRequest, TemplateResponse } from '../api/api.gen.ts';
import { ApiFailure } from '../api/failure.ts';
import { Dialog } from '../parts/dialog.tsx';
import { TextArea, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Outcome, type OutcomeState, useOutcome } from '../parts/outcome.tsx';
import { Panel } from '../parts/panel.tsx';
import { TemplatePicker } from '../parts/template-picker.tsx';
import { mayDo } from '../renter/pod-actions.ts';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { useAction } from '../session/queries.tsx';
import { environmentText, type Parsed, parseEnvironment, parsePorts } from './template-text.ts';

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
    async ({ environment, internal_ports: ports, ...texts }) => {
      const body: CustomTemplateRequest = {
        ...texts,
        environment: parsedValue('environment', parseEnvironment(environment)),
        internal_ports: parsedValue('internal_ports', parsePorts(ports)),
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

/** Returns the value; throws an error for the form if the text of the field is malformed. */
function parsedValue<Value>(field: string, parsed: Parsed<Value>): Value {
  if ('value' in parsed) return parsed.value;
  throw new ApiFailure('A field cannot be read', {
    status: 0,
    code: 'field_malformed',
    hint: 'Correct the marked field. Nothing was sent.',
    requestId: null,
    problems: [{ field: `body.${field}`, message: parsed.problem }],
  });
}

function SwitchForm({ pod, onDone }: FormProps) {
  const change = useAction('PUT /pods/{id}/switch-template');
  const [chosen, setChosen] = useState<TemplateResponse | null>(null);
  const form = useForm({}, async () => {
    if (chosen === null) throw noTemplate();
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

function noTemplate(): ApiFailure {
  return new ApiFailure('No template is chosen', {
    status: 0,
    code: 'field_malformed',
    hint: 'Choose a template. Nothing was sent.',
    requestId: null,
    problems: [],
  });
}
