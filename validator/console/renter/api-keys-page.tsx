import type { ApiKey } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Disclosure } from '../parts/disclosure.tsx';
import { type Editor, EditorPanel, useEditor } from '../parts/editor.tsx';
import { formatUsd } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryContent, QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time, useNow } from '../parts/time.tsx';
import { useApi } from '../session/queries.tsx';
import { budgetsOf, KEY_TONES, stateOf } from './api-key.ts';
import { ApiKeyButtons } from './api-key-buttons.tsx';
import { ChangeApiKey, CreateApiKey } from './api-key-forms.tsx';

const MINUTE_MS = 60_000;

export function ApiKeysPage() {
  const keys = useApi('GET /keys', {});
  const editor = useEditor<ApiKey>();
  const { item } = editor;
  return (
    <Page
      title="API keys"
      lead="Programs send a key in the header X-API-Key. Give each program its own key, with only the rights that it needs."
    >
      <QueryPanel
        title="Your keys"
        query={keys}
        isEmpty={({ length }) => length === 0}
        empty="You have no API key. Create one below."
      >
        {(rows) => (
          <DataTable
            caption="API keys"
            rows={rows}
            rowKey={({ id }) => id}
            columns={columnsOf(editor)}
          />
        )}
      </QueryPanel>
      <EditorPanel
        editor={editor}
        title={item === null ? 'Create an API key' : `Change API key ${item.name}`}
      >
        {item === null ? (
          <CreateApiKey editor={editor} />
        ) : (
          <ChangeApiKey apiKey={item} editor={editor} />
        )}
      </EditorPanel>
    </Page>
  );
}

const columnsOf = (editor: Editor<ApiKey>): readonly Column<ApiKey>[] => [
  {
    key: 'name',
    title: 'Name',
    cell: ({ name, masked_key: masked }) => (
      <>
        {name}
        <div className="small faint">
          <code>{masked}</code>
        </div>
      </>
    ),
  },
  {
    key: 'state',
    title: 'Status',
    cell: (key) => (
      <>
        <KeyStatus apiKey={key} />
        {key.expires_at === null ? null : (
          <div className="small">
            expires <Time value={key.expires_at} />
          </div>
        )}
      </>
    ),
  },
  { key: 'scopes', title: 'Scopes', cell: ({ scopes }) => scopes?.join(', ') ?? 'all' },
  { key: 'spending', title: 'Spending', cell: (key) => <Spending apiKey={key} /> },
  { key: 'pods', title: 'Pods', isNumber: true, cell: ({ pods_count: count }) => count },
  {
    key: 'used',
    title: 'Last used',
    cell: ({ last_used: at }) => (at === null ? 'never' : <Time value={at} relative />),
  },
  {
    key: 'actions',
    title: 'Actions',
    cell: (key) => <ApiKeyButtons apiKey={key} editor={editor} />,
  },
];

function KeyStatus({ apiKey }: { apiKey: ApiKey }) {
  const state = stateOf(apiKey, useNow(MINUTE_MS));
  return <Status name={state} tone={KEY_TONES[state]} />;
}

/** Use against the budgets, and the requests that a budget has rejected. */
function Spending({ apiKey }: { apiKey: ApiKey }) {
  const hasBudget = budgetsOf(apiKey).some(({ limit }) => limit !== null);
  return (
    <>
      {budgetsOf(apiKey).map(({ name, spent, limit }) => (
        <div key={name}>
          <Money usd={spent} />
          {limit === null ? null : ` of ${formatUsd(limit)}`} {name}
          {limit === null || limit === 0 ? null : (
            <meter
              aria-label={`Budget of ${apiKey.name}, used ${name}`}
              max={limit}
              value={Math.min(spent, limit)}
            />
          )}
        </div>
      ))}
      {hasBudget ? (
        <Disclosure summary="Rejected requests">
          <Refusals id={apiKey.id} />
        </Disclosure>
      ) : null}
    </>
  );
}

function Refusals({ id }: { id: string }) {
  const refusals = useApi('GET /keys/{id}/refusals', { params: { id } });
  return (
    <QueryContent
      query={refusals}
      isEmpty={(data) => data.refusals.length === 0}
      empty="The budgets have rejected no request."
    >
      {(data) => (
        <ul>
          {data.refusals.map((row) => (
            <li key={row.id}>
              <Time value={row.created_at} />: <code>{row.route}</code> needed{' '}
              <Money usd={row.amount_usd} />, but <Money usd={row.spent_usd} /> of{' '}
              <Money usd={row.budget_usd} /> were spent {row.window === 'day' ? 'that day' : ''}
            </li>
          ))}
        </ul>
      )}
    </QueryContent>
  );
}
