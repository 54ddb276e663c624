import { Link } from 'wouter';
import type { Volume } from '../api/api.gen.ts';
import { Bytes } from '../parts/amounts.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { type Editor, EditorPanel, useEditor } from '../parts/editor.tsx';
import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { paths } from '../paths.ts';
import { useAction, useApi } from '../session/queries.tsx';
import { isMoving } from './volume.ts';
import { VolumeButtons } from './volume-buttons.tsx';
import { VolumeStatus } from './volume-status.tsx';

const MOVING_MS = 2_000;
const STEADY_MS = 15_000;

export function VolumesPage() {
  const volumes = useApi(
    'GET /volumes',
    {},
    { refetchMs: (rows) => (rows?.some(isMoving) ? MOVING_MS : STEADY_MS) },
  );
  const editor = useEditor<Volume>();
  return (
    <Page title="Volumes" lead="A volume keeps data between pods. Choose it when you rent a pod.">
      <QueryPanel
        title="Your volumes"
        query={volumes}
        isEmpty={({ length }) => length === 0}
        empty="You have no volume. Create one below."
      >
        {(rows) => (
          <DataTable
            caption="Volumes"
            rows={rows}
            rowKey={({ id }) => id}
            columns={[
              {
                key: 'name',
                title: 'Name',
                cell: ({ id, name }) => <Link href={paths.volume(id)}>{name}</Link>,
              },
              {
                key: 'status',
                title: 'Status',
                cell: (volume) => <VolumeStatus volume={volume} />,
              },
              {
                key: 'size',
                title: 'Size',
                isNumber: true,
                cell: ({ current_size_bytes: bytes }) => <Bytes bytes={bytes} />,
              },
              {
                key: 'saved',
                title: 'Saved',
                cell: ({ last_saved_at: at }) =>
                  at === null ? 'never' : <Time value={at} relative />,
              },
              {
                key: 'actions',
                title: 'Actions',
                cell: (volume) => (
                  <VolumeButtons
                    volume={volume}
                    onDeleted={() => editor.finish(`Volume ${volume.name} is deleted.`)}
                  />
                ),
              },
            ]}
          />
        )}
      </QueryPanel>
      <EditorPanel editor={editor} title="Create a volume">
        <CreateVolume editor={editor} />
      </EditorPanel>
    </Page>
  );
}

function CreateVolume({ editor }: { editor: Editor<Volume> }) {
  const create = useAction('POST /volumes');
  const form = useForm({ name: '', description: '' }, async ({ name, description }) => {
    const body = { name, description: description || null };
    await create.mutateAsync({ body });
    editor.finish(`Volume ${name} is created. It is empty.`);
  });
  return (
    <Form form={form} action="Create the volume">
      <TextField form={form} name="name" label="Name" maxLength={100} isRequired />
      <TextField form={form} name="description" label="Description" maxLength={1_000} />
    </Form>
  );
}
