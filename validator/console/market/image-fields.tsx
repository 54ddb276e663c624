import type { UseQueryResult } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { TemplateResponse } from '../api/api.gen.ts';
import { SelectField, TextArea, TextField } from '../parts/fields.tsx';
import type { FormState } from '../parts/form.tsx';
import { QueryContent } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { environmentIn, portsIn, type RentValues } from './rent-request.ts';

export type RentForm = FormState<RentValues>;

type ImageFieldsProps = {
  form: RentForm;
  templates: UseQueryResult<TemplateResponse[], Error>;
  chosen: TemplateResponse | undefined;
};

/** The image of the pod: from a template, or from a Dockerfile that the node builds. */
export function ImageFields({ form, templates, chosen }: ImageFieldsProps) {
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
        <QueryContent
          query={templates}
          isEmpty={({ length }) => length === 0}
          empty={
            <p>
              There is no template. <Link href={paths.templates}>Create one</Link>, or use a
              Dockerfile.
            </p>
          }
        >
          {(rows) => <TemplateChoice form={form} templates={rows} chosen={chosen} />}
        </QueryContent>
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

type TemplateChoiceProps = {
  form: RentForm;
  templates: readonly TemplateResponse[];
  chosen: TemplateResponse | undefined;
};

function TemplateChoice({ form, templates, chosen }: TemplateChoiceProps) {
  const [search, setSearch] = useState('');
  const [owner, setOwner] = useState('all');
  const wanted = search.trim().toLowerCase();
  const shown = templates.filter(
    (template) =>
      (owner === 'all' || (template.user_id === null) === (owner === 'official')) &&
      `${template.name} ${imageOf(template)}`.toLowerCase().includes(wanted),
  );
  return (
    <fieldset className="choices">
      <legend>Template</legend>
      <div className="row">
        <input
          type="search"
          aria-label="Search templates"
          placeholder="Name or image"
          value={search}
          onChange={({ target }) => setSearch(target.value)}
        />
        <select
          aria-label="Owner of the templates"
          value={owner}
          onChange={({ target }) => setOwner(target.value)}
        >
          <option value="all">All</option>
          <option value="official">Official</option>
          <option value="own">Of accounts</option>
        </select>
      </div>
      {shown.length === 0 ? <p className="empty">No template matches the search.</p> : null}
      <ul className="plain">
        {shown.map((template) => (
          <li key={template.id}>
            <label>
              <input
                type="radio"
                name="template"
                checked={template.id === chosen?.id}
                onChange={() => form.set('template_id', template.id)}
              />
              <span>
                {template.name} <span className="small faint">{imageOf(template)}</span>
              </span>
            </label>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}

function imageOf({ docker_image: image, docker_image_tag: tag }: TemplateResponse): string {
  return tag === '' ? image : `${image}:${tag}`;
}

/** Environment and ports of this pod only; the chosen template stays as it is. */
function TemplateChanges({ form, chosen }: Omit<ImageFieldsProps, 'templates'>) {
  const { environment, internal_ports: ports } = form.values;
  const problems = [environmentIn(environment).problem, portsIn(ports).problem];
  const names = Object.keys(chosen?.environment ?? {});
  return (
    <>
      <TextField
        form={form}
        name="internal_ports"
        label="Ports of the container"
        placeholder={chosen?.internal_ports.join(', ') ?? ''}
        hint={problems[1] ?? 'Empty for the ports of the template. 22 is for SSH.'}
      />
      <TextArea
        form={form}
        name="environment"
        label="Environment"
        rows={3}
        hint={
          problems[0] ??
          `One NAME=value per line, for this pod only.${names.length === 0 ? '' : ` The template sets ${names.join(', ')}.`} Use secrets for passwords.`
        }
      />
    </>
  );
}
