import { Link, useParams } from 'wouter';
import type { SignedEvidence } from '../api/api.gen.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { CursorPager } from '../parts/cursor-pager.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { ObjectContent } from '../parts/object-content.tsx';
import { Page } from '../parts/page.tsx';
import { Panel, QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { proveEvidence } from './proof.ts';
import { ProofPanel } from './proof-panel.tsx';
import { NodeLink, VerdictStatus } from './verdict.tsx';
import './checks.css';

const PAGE_SIZE = 50;
const DEFAULTS = { before: 0 };

/** Documents of a node, newest first. */
export function NodeEvidencePage() {
  const { id = '' } = useParams<{ id: string }>();
  const [{ before }, change] = useUrlState(DEFAULTS);
  const query = { limit: PAGE_SIZE, ...(before === 0 ? {} : { before }) };
  const evidence = useApi('GET /operator/validator/executors/{id}/evidence', {
    params: { id },
    query,
  });
  return (
    <Page title="Evidence of a node" lead={<code>{id}</code>}>
      <ObjectContent
        query={evidence}
        what="node"
        list={{ path: paths.validatorCycles, title: 'the cycles' }}
      >
        <QueryPanel
          title="Documents, newest first"
          query={evidence}
          isEmpty={({ documents }) => documents.length === 0}
          empty="The validator has no document of this node. Check the id; a new node is checked in the next cycle."
        >
          {({ documents, first_seq: first, last_seq: last, next }) => (
            <>
              <p>
                {first === null || last === null
                  ? 'The chain has no trusted head, so missing documents cannot be detected.'
                  : `The signed head of the chain covers documents ${first} to ${last}.`}
              </p>
              <DataTable
                caption="Documents"
                rows={documents}
                rowKey={(row) => row.id}
                columns={[
                  {
                    key: 'seq',
                    title: 'Document',
                    cell: (row) => <Link href={paths.evidence(row.id)}>{row.seq}</Link>,
                  },
                  {
                    key: 'verdict',
                    title: 'Verdict',
                    cell: (row) => <VerdictStatus verdict={row.verdict} />,
                  },
                  {
                    key: 'at',
                    title: 'Check ended',
                    cell: (row) => <Time value={row.finished_at} />,
                  },
                  { key: 'id', title: 'Id', cell: (row) => <code>{row.id.slice(0, 16)}…</code> },
                ]}
              />
              <CursorPager
                isFirst={before === 0}
                hasNext={next !== null}
                onFirst={() => change({ before: 0 })}
                onNext={() => change({ before: next ?? 0 })}
              />
            </>
          )}
        </QueryPanel>
      </ObjectContent>
    </Page>
  );
}

/** A signed document. The browser verifies it. */
export function EvidencePage() {
  const { id = '' } = useParams<{ id: string }>();
  const evidence = useApi('GET /operator/validator/evidence/{id}', { params: { id } });
  const { data } = evidence;
  return (
    <Page title="Evidence">
      <ObjectContent
        query={evidence}
        what="record"
        list={{ path: paths.validatorCycles, title: 'the cycles' }}
      >
        <QueryPanel title="Record" query={evidence}>
          {(record) => <EvidenceFacts record={record} />}
        </QueryPanel>
        {data === undefined ? null : (
          <>
            <ProofPanel record={data} prove={(ports) => proveEvidence(data, ports)} />
            {data.header === null ? null : <SignedText title="Signed header" text={data.header} />}
            {data.document === null ? null : <SignedText title="Document" text={data.document} />}
          </>
        )}
      </ObjectContent>
    </Page>
  );
}

function EvidenceFacts({ record }: { record: SignedEvidence }) {
  return (
    <Facts
      facts={[
        ['Node', <NodeLink key="node" id={record.executor_id} />],
        ['Number', record.seq],
        ['Verdict', <VerdictStatus key="verdict" verdict={record.verdict} />],
        ['Check ended', <Time key="at" value={record.finished_at} />],
        ['Id', <code key="id">{record.id}</code>],
        ...(record.document === null
          ? [
              [
                'Dropped',
                record.dropped_at === null ? (
                  'The document is missing, and the chain does not state that it was dropped.'
                ) : (
                  <Time key="dropped" value={record.dropped_at} />
                ),
              ] as const,
            ]
          : []),
      ]}
    />
  );
}

/** The text as it was signed: any other formatting would have another signature. */
function SignedText({ title, text }: { title: string; text: string }) {
  return (
    <Panel title={title} actions={<CopyButton text={text} label={`Copy: ${title}`} />}>
      <textarea className="signed-text" rows={8} readOnly aria-label={title} value={text} />
    </Panel>
  );
}
