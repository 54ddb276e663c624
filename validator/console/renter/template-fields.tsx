import { FailureNotice } from '../parts/failure-notice.tsx';
import { CheckboxField, SelectField, TextArea, TextField } from '../parts/fields.tsx';
import type { FormState } from '../parts/form.tsx';
import { wordsOf } from '../parts/format.ts';
import { useApi } from '../session/queries.tsx';
import { CATEGORIES, loginName, type TemplateValues } from './template-form.ts';

type TemplateForm = { form: FormState<TemplateValues> };

/** All fields of a template. */
export function TemplateFields({ form }: TemplateForm) {
  return (
    <>
      <TextField form={form} name="name" label="Name" maxLength={200} isRequired />
      <TextField form={form} name="description" label="Description" maxLength={4_000} />
      <ImageFields form={form} />
      <TextField
        form={form}
        name="internal_ports"
        label="Ports"
        hint="Ports of the container that get an external port, such as 22, 8080. 22 is for SSH."
      />
      <TextArea
        form={form}
        name="environment"
        label="Environment"
        hint="One variable on each line: NAME=value. Use secrets for passwords and tokens."
      />
      <TextArea
        form={form}
        name="volumes"
        label="Folders that survive restarts"
        rows={2}
        hint="One folder of the container on each line."
      />
      <TextField
        form={form}
        name="entrypoint"
        label="Entrypoint"
        hint="Empty: the entrypoint of the image."
      />
      <TextArea
        form={form}
        name="startup_commands"
        label="Startup commands"
        hint="Commands that the container runs, or arguments of the entrypoint. Empty: the command of the image."
      />
      <SelectField
        form={form}
        name="category"
        label="Category"
        options={CATEGORIES.map((value) => ({ value, label: wordsOf(value) }))}
      />
      <TextField form={form} name="tags" label="Tags" hint="Words, separated by commas." />
      <TextArea form={form} name="readme" label="Instructions" />
      <CheckboxField
        form={form}
        name="is_private"
        label="Private"
        hint="If not, all accounts see the template with its environment."
      />
    </>
  );
}

function ImageFields({ form }: TemplateForm) {
  const logins = useApi('GET /docker-credentials', {});
  const rows = Array.isArray(logins.data) ? logins.data : [];
  return (
    <>
      <TextField
        form={form}
        name="docker_image"
        label="Image"
        placeholder="pytorch/pytorch"
        hint="Without its tag. A registry is allowed: registry.example.com/image."
        isRequired
      />
      <TextField form={form} name="docker_image_tag" label="Tag" hint="Empty: latest." />
      <TextField
        form={form}
        name="docker_image_digest"
        label="Digest"
        placeholder="sha256:…"
        hint="Takes precedence over the tag."
      />
      <SelectField
        form={form}
        name="docker_credential_id"
        label="Registry login"
        hint={rows.length === 0 ? 'Add a login under Registry logins for private images.' : null}
        options={[
          { value: '', label: 'none, the image is public' },
          ...rows.map((login) => ({ value: login.id, label: loginName(login) })),
        ]}
      />
      {logins.error === null ? null : (
        <FailureNotice error={logins.error} retry={() => void logins.refetch()} />
      )}
    </>
  );
}
