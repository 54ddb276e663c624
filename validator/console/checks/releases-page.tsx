import { DataTable } from '../parts/data-table.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { useApi } from '../session/queries.tsx';

const MAX_RELEASES = 200;
const PER_MILLE = 10;

/** Releases of the agent and their roll-out. */
export function ReleasesPage() {
  const releases = useApi('GET /operator/validator/releases', { query: { limit: MAX_RELEASES } });
  return (
    <Page title="Releases" lead="Releases of the agent. The first one is in force.">
      <QueryPanel
        title="Releases, newest first"
        query={releases}
        isEmpty={(data) => data.releases.length === 0}
        empty="The validator has published no release. Agents keep their version."
      >
        {(data) => (
          <DataTable
            caption="Releases"
            rows={data.releases}
            rowKey={({ sequence }) => String(sequence)}
            columns={[
              { key: 'version', title: 'Version', cell: (row) => row.version },
              {
                key: 'rollout',
                title: 'Agents',
                isNumber: true,
                cell: (row) => `${row.rollout_permille / PER_MILLE} %`,
              },
              { key: 'since', title: 'Since', cell: (row) => <Time value={row.rollout_since} /> },
              {
                key: 'rollback',
                title: 'State',
                cell: (row) =>
                  row.rollback_digest === null ? (
                    <Status name="Released" tone="good" />
                  ) : (
                    <>
                      <Status name="Rolled back" tone="bad" /> {row.rollback_reason}
                    </>
                  ),
              },
              { key: 'digest', title: 'Image', cell: (row) => <code>{row.digest}</code> },
              { key: 'notes', title: 'Notes', cell: (row) => row.notes },
            ]}
          />
        )}
      </QueryPanel>
    </Page>
  );
}
