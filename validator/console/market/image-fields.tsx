import { Link } from 'wouter';
import type { TemplateResponse } from '../api/api.gen.ts';
import { isNotSent, notSent } from '../api/failure.ts';
import { SelectField, TextArea, TextField } from '../parts/fields.tsx';
import type { FormState } from '../parts/form.tsx';
import { TemplatePicker } from '../parts/template-picker.tsx';
import { paths } from '../paths.ts';
import { problemsIn, type RentValues } from './rent-request.ts';

export type RentForm = FormState<RentValues>;

type ImageFieldsProps = {
  form: RentForm;
  chosen: TemplateResponse | undefined;
  onChoose: (template: TemplateResponse) => void;
};

/** The image of the pod: from a template, or from a Dockerfile that the node builds. */
export function ImageFields({ form, chosen, onChoose }: ImageFieldsProps) {
  const isTemplate = form.values.source === 'template';
  return (
    <>
      <SelectField
        form={form}
        name="source"
        label="Image"
        isRequired
        options={[
          { value: 'template', label: 'From a template' },
          { value: 'dockerfile', label: 'From a Dockerfile' },
        ]}
      />
      {isTemplate ? (
        <>
          <TemplatePicker chosenId={chosen?.id ?? ''} onChoose={onChoose} />
          {chosen === undefined ? null : (
            <p className="hint">
              Chosen: {chosen.name}.{' '}
              <Link href={paths.template(chosen.id)}>About the template</Link>
            </p>
          )}
        </>
      ) : (
        <TextArea
          form={form}
          name="dockerfile_content"
          label="Dockerfile"
          rows={10}
          maxLength={65_536}
          isRequired
          hint="The node builds it. Write ports and environment into it, with EXPOSE and ENV."
        />
      )}
      {isTemplate ? <TemplateChanges form={form} chosen={chosen} /> : null}
    </>
  );
}

/** Environment and ports of this pod only; the chosen template stays as it is. */
function TemplateChanges({ form, chosen }: Omit<ImageFieldsProps, 'onChoose'>) {
  const fields = { ...form, failure: presentFailure(form) };
  const names = Object.keys(chosen?.environment ?? {});
  return (
    <>
      <TextField
        form={fields}
        name="internal_ports"
        label="Ports of the container"
        placeholder={chosen?.internal_ports.join(', ') ?? ''}
        hint="Empty for the ports of the template. 22 is for SSH."
      />
      <TextArea
        form={fields}
        name="environment"
        label="Environment"
        rows={3}
        hint={`One NAME=value per line, for this pod only.${names.length === 0 ? '' : ` The template sets ${names.join(', ')}.`} Use secrets for passwords.`}
      />
    </>
  );
}

/** Problems of the present texts, before they are sent; else the server's. */
function presentFailure({ values, failure }: RentForm): RentForm['failure'] {
  const problems = problemsIn(values);
  if (problems.length > 0) return notSent('A field cannot be read', problems);
  return failure !== null && isNotSent(failure) ? null : failure;
}
