import { type ReactNode, useState } from 'react';
import { Link, useLocation, useParams, useSearch } from 'wouter';
import type { TemplateResponse, User } from '../api/api.gen.ts';
import { Facts } from '../parts/facts.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { ObjectContent } from '../parts/object-content.tsx';
import { Outcome } from '../parts/outcome.tsx';
import { Page } from '../parts/page.tsx';
import { Panel, QueryContent, QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { paths } from '../paths.ts';
import { useAction, useApi } from '../session/queries.tsx';
import { TemplateFields } from './template-fields.tsx';
import { bodyOf, copyOf, NEW_TEMPLATE, type TemplateValues, valuesOf } from './template-form.ts';
import { CHECK_NAMES, CHECK_TONES, imageOf } from './template-list.ts';

const CHECKING_MS = 3_000;

/** Creates a template; with `from` in the query, as a copy. */
export function NewTemplatePage() {
  const from = new URLSearchParams(useSearch()).get('from') ?? '';
  const source = useApi('GET /templates/{id}', { params: { id: from } }, { enabled: from !== '' });
  return (
    <Page title={from === '' ? 'Create a template' : 'Copy a template'}>
      {from === '' ? (
        <Panel title="Template">
          <CreateTemplate initial={NEW_TEMPLATE} />
        </Panel>
      ) : (
        <ObjectContent
          query={source}
          what="template"
          list={{ path: paths.templates, title: 'the templates' }}
        >
          <QueryPanel title="Template" query={source}>
            {(template) => <CreateTemplate key={template.id} initial={copyOf(template)} />}
          </QueryPanel>
        </ObjectContent>
      )}
    </Page>
  );
}

function CreateTemplate({ initial }: { initial: TemplateValues }) {
  const create = useAction('POST /templates');
  const [, navigate] = useLocation();
  const form = useForm(initial, async (values) => {
    const body = bodyOf(values);
    const { id } = await create.mutateAsync({ body });
    navigate(paths.template(id));
  });
  return (
    <Form form={form} action="Create the template">
      <TemplateFields form={form} />
    </Form>
  );
}

/** A template, which its owner can change. */
export function TemplatePage() {
  const { id = '' } = useParams<{ id: string }>();
  const template = useApi(
    'GET /templates/{id}',
    { params: { id } },
    { refetchMs: (data) => (data?.status === 'VERIFY_PENDING' ? CHECKING_MS : 0) },
  );
  const user = useApi('GET /users/me', {});
  return (
    <Page
      title={template.data?.name ?? 'Template'}
      lead={template.data?.description}
      actions={<Link href={paths.newTemplate(id)}>Copy</Link>}
    >
      <ObjectContent
        query={template}
        what="template"
        list={{ path: paths.templates, title: 'the templates' }}
      >
        <QueryPanel title="Template" query={template}>
          {(data) => <TemplateFacts template={data} />}
        </QueryPanel>
        {template.data === undefined ? null : (
          <QueryContent query={user}>
            {(reader) => <OwnTemplate key={id} template={template.data} reader={reader} />}
          </QueryContent>
        )}
      </ObjectContent>
    </Page>
  );
}

/** Shown only to the owner. */
function OwnTemplate({ template, reader }: { template: TemplateResponse; reader: User }) {
  if (template.user_id !== reader.id) return null;
  return (
    <Panel title="Change the template">
      <ChangeTemplate template={template} />
    </Panel>
  );
}

function ChangeTemplate({ template }: { template: TemplateResponse }) {
  const change = useAction('PUT /templates/{id}');
  const [outcome, setOutcome] = useState<ReactNode>(null);
  const form = useForm(valuesOf(template), async (values) => {
    setOutcome(null);
    await change.mutateAsync({ params: { id: template.id }, body: bodyOf(values) });
    setOutcome('The template is saved. Pods that use it keep their copy.');
  });
  return (
    <>
      <Form form={form} action="Save">
        <TemplateFields form={form} />
      </Form>
      <Outcome>{outcome}</Outcome>
    </>
  );
}

function TemplateFacts({ template }: { template: TemplateResponse }) {
  const { status, internal_ports: ports, environment, volumes, readme } = template;
  const variables = Object.entries(environment);
  return (
    <>
      <Facts
        facts={[
          ['Image', <code key="image">{imageOf(template)}</code>],
          [
            'Image check',
            <Status key="check" name={CHECK_NAMES[status]} tone={CHECK_TONES[status]} />,
          ],
          ['Ports', ports.join(', ') || 'none'],
          ['Folders', volumes.join(', ') || 'none'],
          ['Visible to', template.is_private ? 'only you' : 'all accounts'],
          ['Entrypoint', template.entrypoint || 'of the image'],
          ['Startup commands', template.startup_commands || 'of the image'],
          ...variables.map(([name, value]) => [`Variable ${name}`, value] as const),
          ['Id', <code key="id">{template.id}</code>],
        ]}
      />
      {readme === '' ? null : <p className="plain-text">{readme}</p>}
    </>
  );
}
