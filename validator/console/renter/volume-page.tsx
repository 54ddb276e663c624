import { type ReactNode, useState } from 'react';
import { useLocation, useParams } from 'wouter';
import type { Volume } from '../api/api.gen.ts';
import { Bytes } from '../parts/amounts.tsx';
import { Facts } from '../parts/facts.tsx';
import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { ObjectContent } from '../parts/object-content.tsx';
import { Outcome } from '../parts/outcome.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { paths } from '../paths.ts';
import { useAction, useApi } from '../session/queries.tsx';
import { isMoving, VOLUME_TEXTS } from './volume.ts';
import { VolumeButtons } from './volume-buttons.tsx';
import { VolumeStatus } from './volume-status.tsx';

const MOVING_MS = 2_000;
const STEADY_MS = 10_000;

export function VolumePage() {
  const { id = '' } = useParams<{ id: string }>();
  const volume = useApi(
    'GET /volumes/{id}',
    { params: { id } },
    { refetchMs: (data) => (data && isMoving(data) ? MOVING_MS : STEADY_MS) },
  );
  return (
    <Page title={volume.data?.name ?? 'Volume'}>
      <ObjectContent
        query={volume}
        what="volume"
        list={{ path: paths.volumes, title: 'your volumes' }}
      >
        <QueryPanel title="State" query={volume}>
          {(data) => <VolumeState volume={data} />}
        </QueryPanel>
        <QueryPanel title="Name and description" query={volume}>
          {(data) => <DescribeVolume volume={data} />}
        </QueryPanel>
      </ObjectContent>
    </Page>
  );
}

function VolumeState({ volume }: { volume: Volume }) {
  const [, navigate] = useLocation();
  const savedAt = volume.last_saved_at;
  return (
    <>
      <p>{VOLUME_TEXTS[volume.status]}</p>
      <Facts
        facts={[
          ['Status', <VolumeStatus key="status" volume={volume} />],
          ['Size', <Bytes key="size" bytes={volume.current_size_bytes} />],
          ['Limit', <Bytes key="limit" bytes={volume.size_limit_bytes} />],
          ['Files', volume.current_file_count.toLocaleString('en-US')],
          ['Measured', <Time key="measured" value={volume.last_metrics_update} />],
          ['Saved', savedAt === null ? 'never' : <Time key="saved" value={savedAt} />],
          ['Newest data', volume.executor_id === null ? 'saved' : `on node ${volume.executor_id}`],
          ['Created', <Time key="created" value={volume.created_at} />],
          ['Id', <code key="id">{volume.id}</code>],
        ]}
      />
      <VolumeButtons volume={volume} onDeleted={() => navigate(paths.volumes)} />
    </>
  );
}

function DescribeVolume({ volume }: { volume: Volume }) {
  const { id, name, description } = volume;
  const change = useAction('PUT /volumes/{id}');
  const [outcome, setOutcome] = useState<ReactNode>(null);
  const form = useForm({ name, description }, async (body) => {
    setOutcome(null);
    await change.mutateAsync({ params: { id }, body });
    setOutcome('The name and the description are saved.');
  });
  return (
    <>
      <Outcome>{outcome}</Outcome>
      <Form form={form} action="Save">
        <TextField form={form} name="name" label="Name" maxLength={100} isRequired />
        <TextField form={form} name="description" label="Description" maxLength={1_000} />
      </Form>
    </>
  );
}
