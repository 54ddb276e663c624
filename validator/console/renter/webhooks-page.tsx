import { Link } from 'wouter';
import type { Webhook } from '../api/api.gen.ts';
import { DataTable } from '../parts/data-table.tsx';
import { DeleteButton } from '../parts/delete-button.tsx';
import { type Editor, EditorPanel, useEditor } from '../parts/editor.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { useAction, useApi } from '../session/queries.tsx';
import { describeEvents } from './webhook.ts';
import { WebhookForm } from './webhook-form.tsx';
import { PauseButton, WebhookStatus } from './webhook-status.tsx';

const REFETCH_MS = 15_000;

export function WebhooksPage() {
  const webhooks = useApi('GET /webhooks', {}, { refetchMs: REFETCH_MS });
  const editor = useEditor<Webhook>();
  const { item } = editor;
  return (
    <Page title="Webhooks" lead="The marketplace sends events of your account to these addresses.">
      <QueryPanel
        title="Your webhooks"
        query={webhooks}
        isEmpty={({ length }) => length === 0}
        empty="You have no webhook. Create one below to be notified of failed pods and backups."
      >
        {(rows) => (
          <DataTable
            caption="Webhooks"
            rows={rows}
            rowKey={({ id }) => id}
            columns={[
              { key: 'url', title: 'Address', cell: (webhook) => <Address webhook={webhook} /> },
              {
                key: 'status',
                title: 'Status',
                cell: (webhook) => <WebhookStatus webhook={webhook} />,
              },
              { key: 'events', title: 'Events', cell: describeEvents },
              {
                key: 'actions',
                title: 'Actions',
                cell: (webhook) => <WebhookButtons webhook={webhook} editor={editor} />,
              },
            ]}
          />
        )}
      </QueryPanel>
      <EditorPanel
        editor={editor}
        title={item === null ? 'Create a webhook' : `Change webhook ${item.url}`}
      >
        <WebhookForm editor={editor} />
      </EditorPanel>
    </Page>
  );
}

function Address({ webhook }: { webhook: Webhook }) {
  const { id, url, description } = webhook;
  return (
    <>
      <Link href={paths.webhook(id)}>{url}</Link>
      {description === '' ? null : <div className="small">{description}</div>}
    </>
  );
}

function WebhookButtons({ webhook, editor }: { webhook: Webhook; editor: Editor<Webhook> }) {
  const { id, url } = webhook;
  const remove = useAction('DELETE /webhooks/{id}');
  return (
    <div className="row">
      <button type="button" onClick={() => editor.edit(webhook)}>
        Change
      </button>
      <PauseButton webhook={webhook} />
      <DeleteButton
        what={`webhook ${url}`}
        onDelete={async () => {
          await remove.mutateAsync({ params: { id } });
          editor.finish(`Webhook ${url} is deleted.`);
        }}
      >
        <p>Events that wait for it are not delivered. Its log of deliveries is lost.</p>
      </DeleteButton>
    </div>
  );
}
