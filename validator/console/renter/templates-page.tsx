import { Link } from 'wouter';
import type { TemplateResponse } from '../api/api.gen.ts';
import { DataTable, Pager } from '../parts/data-table.tsx';
import { DeleteButton } from '../parts/delete-button.tsx';
import { wordsOf } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { SearchField } from '../parts/search-field.tsx';
import { Status } from '../parts/status.tsx';
import { oneOf } from '../parts/url-state.ts';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { useAction, useApi } from '../session/queries.tsx';
import { CHECK_NAMES, CHECK_TONES, imageOf, OWNERS, ownerOf } from './template-list.ts';

const PAGE_SIZE = 50;
const DEFAULTS = { owner: 'official', q: '', page: 1 };
const CHECKS = { owner: oneOf(OWNERS) };

export function TemplatesPage() {
  const [chosen, change] = useUrlState(DEFAULTS, CHECKS);
  const owner = OWNERS.find((name) => name === chosen.owner) ?? 'official';
  const { page, q } = chosen;
  const templates = useApi('GET /templates', { query: { owner, q, page, limit: PAGE_SIZE } });
  const { data: user } = useApi('GET /users/me', {});
  return (
    <Page
      title="Templates"
      lead="A template describes the container of a pod: its image, ports, environment and commands."
      actions={<Link href={paths.newTemplate()}>Create a template</Link>}
    >
      <QueryPanel
        title={`${wordsOf(owner)} templates`}
        query={templates}
        actions={
          <>
            <label className="row">
              Show
              <select value={owner} onChange={({ target }) => change({ owner: target.value })}>
                {OWNERS.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
            <SearchField label="Name or image" value={q} onSearch={(text) => change({ q: text })} />
          </>
        }
        isEmpty={({ length }) => length === 0 && page === 1}
        empty={
          <p>
            No template matches. Change the search, or{' '}
            <Link href={paths.newTemplate()}>create a template</Link>.
          </p>
        }
      >
        {(rows) => (
          <TemplateTable
            rows={rows}
            page={page}
            accountId={user?.id ?? ''}
            onPage={(next) => change({ page: next })}
          />
        )}
      </QueryPanel>
    </Page>
  );
}

type TemplateTableProps = {
  rows: readonly TemplateResponse[];
  page: number;
  accountId: string;
  onPage: (page: number) => void;
};

function TemplateTable({ rows, page, accountId, onPage }: TemplateTableProps) {
  return (
    <>
      <DataTable
        caption="Templates"
        rows={rows}
        rowKey={({ id }) => id}
        columns={[
          {
            key: 'name',
            title: 'Name',
            cell: ({ id, name, description }) => (
              <>
                <Link href={paths.template(id)}>{name}</Link>
                {description === '' ? null : <div className="small faint">{description}</div>}
              </>
            ),
          },
          {
            key: 'image',
            title: 'Image',
            cell: (template) => <code>{imageOf(template)}</code>,
          },
          {
            key: 'check',
            title: 'Image check',
            cell: ({ status }) => <Status name={CHECK_NAMES[status]} tone={CHECK_TONES[status]} />,
          },
          { key: 'tags', title: 'Tags', cell: ({ tags }) => tags.join(', ') || '–' },
          {
            key: 'actions',
            title: 'Actions',
            cell: (template) => (
              <TemplateButtons template={template} isOwn={ownerOf(template, accountId) === 'own'} />
            ),
          },
        ]}
      />
      <Pager page={page} hasNext={rows.length === PAGE_SIZE} onPage={onPage} />
    </>
  );
}

function TemplateButtons({ template, isOwn }: { template: TemplateResponse; isOwn: boolean }) {
  const { id, name } = template;
  const remove = useAction('DELETE /templates/{id}');
  return (
    <div className="row">
      <Link href={paths.newTemplate(id)} aria-label={`Copy template ${name}`}>
        Copy
      </Link>
      {isOwn ? (
        <DeleteButton
          what={`template ${name}`}
          onDelete={() => remove.mutateAsync({ params: { id } })}
        >
          <p>The template can no longer be rented. Pods that use it keep their copy.</p>
        </DeleteButton>
      ) : null}
    </div>
  );
}
