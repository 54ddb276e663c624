import { type ReactNode, useState } from 'react';
import { useParams } from 'wouter';
import type { Webhook } from '../api/api.gen.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Facts } from '../parts/facts.tsx';
import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { timeOfField } from '../parts/local-time.ts';
import { ObjectContent } from '../parts/object-content.tsx';
import { Outcome } from '../parts/outcome.tsx';
import { Page } from '../parts/page.tsx';
import { Panel, QueryPanel } from '../parts/panel.tsx';
import { ShownOnce } from '../parts/shown-once.tsx';
import { Time } from '../parts/time.tsx';
import { paths } from '../paths.ts';
import { useAction, useApi } from '../session/queries.tsx';
import { describeEvents } from './webhook.ts';
import { WebhookDeliveries } from './webhook-deliveries.tsx';
import { PauseButton, WebhookStatus } from './webhook-status.tsx';

const REFETCH_MS = 5_000;

/** A webhook: its state, its secret and its log of deliveries. */
export function WebhookPage() {
  const { id = '' } = useParams<{ id: string }>();
  const webhook = useApi('GET /webhooks/{id}', { params: { id } }, { refetchMs: REFETCH_MS });
  return (
    <Page title="Webhook" lead={webhook.data?.url}>
      <ObjectContent
        query={webhook}
        what="webhook"
        list={{ path: paths.webhooks, title: 'your webhooks' }}
      >
        <QueryPanel title="State" query={webhook}>
          {(data) => <WebhookState webhook={data} />}
        </QueryPanel>
        <WebhookDeliveries id={id} />
        <ReplaySince id={id} />
      </ObjectContent>
    </Page>
  );
}

function WebhookState({ webhook }: { webhook: Webhook }) {
  const { id, url, description, created_at: createdAt } = webhook;
  const rotate = useAction('POST /webhooks/{id}/rotate-secret');
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <>
      <Facts
        facts={[
          ['Status', <WebhookStatus key="status" webhook={webhook} />],
          ['Address', url],
          ['Description', description || '–'],
          ['Events', describeEvents(webhook)],
          ['Created', <Time key="created" value={createdAt} />],
        ]}
      />
      <div className="row">
        <PauseButton webhook={webhook} />
        <ConfirmDialog
          trigger="Rotate the secret"
          title={`Replace the secret of ${url}?`}
          action="Replace the secret"
          onConfirm={async () => {
            const answer = await rotate.mutateAsync({ params: { id } });
            setSecret(answer.secret);
          }}
        >
          <p>
            Deliveries are signed with the new and the old secret for 24 hours. Change the receiver
            in that time.
          </p>
        </ConfirmDialog>
      </div>
      <Outcome>
        {secret === null ? null : <ShownOnce label="New secret of the webhook" value={secret} />}
      </Outcome>
    </>
  );
}

function ReplaySince({ id }: { id: string }) {
  const replay = useAction('POST /webhooks/{id}/replay');
  const [outcome, setOutcome] = useState<ReactNode>(null);
  const form = useForm({ since: '' }, async ({ since }) => {
    setOutcome(null);
    await replay.mutateAsync({ params: { id }, body: { since: timeOfField(since) ?? '' } });
    setOutcome('The events since that time are sent again, in order.');
  });
  return (
    <Panel title="Send events again">
      <p>
        All events since a time are sent again, then all later events. Receivers recognise a repeat
        by its webhook-id.
      </p>
      <Outcome>{outcome}</Outcome>
      <Form form={form} action="Send again">
        <TextField
          form={form}
          name="since"
          label="Since"
          type="datetime-local"
          hint="In your local time."
          isRequired
        />
      </Form>
    </Panel>
  );
}
