import { Link } from 'wouter';
import { SelectField } from '../parts/fields.tsx';
import { formatCount } from '../parts/format.ts';
import { QueryContent } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { ChecksField } from './checks-field.tsx';
import type { RentForm } from './image-fields.tsx';

/** The volume and the secrets of the pod. */
export function StorageFields({ form }: { form: RentForm }) {
  const volumes = useApi('GET /volumes', {});
  const secrets = useApi('GET /secrets', {});
  return (
    <>
      <QueryContent
        query={volumes}
        isEmpty={({ length }) => length === 0}
        empty={
          <p>
            You have no volume. <Link href={paths.volumes}>Create one</Link> to keep files after the
            pod.
          </p>
        }
      >
        {(rows) => (
          <SelectField
            form={form}
            name="volume_id"
            label="Volume"
            hint={`Mounted at /mnt.${inUse(rows)}`}
            options={[
              { value: '', label: 'None' },
              ...rows
                .filter(({ status }) => status === 'available')
                .map(({ id, name }) => ({ value: id, label: name })),
            ]}
          />
        )}
      </QueryContent>
      <QueryContent
        query={secrets}
        isEmpty={({ length }) => length === 0}
        empty={
          <p>
            You have no secrets. <Link href={paths.secrets}>Create one</Link> to pass a password to
            the pod.
          </p>
        }
      >
        {(rows) => (
          <ChecksField
            legend="Secrets"
            hint="Files below /run/secrets in the pod."
            options={rows.map(({ name }) => ({ value: name, label: name }))}
            chosen={form.values.secret_names}
            onChange={(names) => form.set('secret_names', names)}
          />
        )}
      </QueryContent>
    </>
  );
}

function inUse(volumes: readonly { status: string }[]): string {
  const count = volumes.filter(({ status }) => status !== 'available').length;
  return count === 0 ? '' : ` ${formatCount(count, 'volume')} cannot be used now.`;
}
