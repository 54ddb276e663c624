import { Link } from 'wouter';
import { CommandBlock } from '../parts/command-block.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { Panel } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { isDeleted } from '../renter/pod-actions.ts';
import type { PodTabProps } from '../renter/pod-page.tsx';

/** Commands and addresses that reach a pod: SSH, ports and notebook. For a deleted pod, what is left of it. */
export function Connection({ pod }: PodTabProps) {
  if (isDeleted(pod.status)) return <Remains pod={pod} />;
  const { ssh_connect_cmd: ssh, known_hosts: knownHosts, jupyter_url: notebook, ssh_keys } = pod;
  return (
    <Panel title="Connect">
      {ssh === null ? (
        <p className="empty">{reasonWithout(pod)}</p>
      ) : (
        <CommandBlock label="Log in over SSH" command={ssh} />
      )}
      {knownHosts === null ? null : (
        <CommandBlock label="Line for ~/.ssh/known_hosts" command={knownHosts} />
      )}
      {ssh !== null && ssh_keys.length > 0 ? (
        <p className="small">
          Keys: {ssh_keys.map(({ name }) => name).join(', ')}.{' '}
          <Link href={paths.pod(pod.id, 'settings')}>Add a key</Link>
        </p>
      ) : null}
      <Ports pod={pod} />
      <Notebook url={notebook} pod={pod} />
    </Panel>
  );
}

function Remains({ pod: { id, status } }: PodTabProps) {
  return (
    <Panel title={status === 'DELETING' ? 'The pod is being deleted' : 'The pod is deleted'}>
      <p>Its addresses, SSH access and log do not exist any more. These pages stay:</p>
      <ul>
        <li>
          <Link href={paths.pod(id, 'cost')}>Statement</Link>: what the pod has cost
        </li>
        <li>
          <Link href={paths.pod(id, 'backups')}>Backups</Link>: restore one into another pod
        </li>
        <li>
          <Link href={paths.pod(id, 'events')}>Events</Link> and{' '}
          <Link href={paths.pod(id, 'metrics')}>metrics</Link>
        </li>
      </ul>
    </Panel>
  );
}

function reasonWithout({ status }: PodTabProps['pod']): string {
  if (status === 'RUNNING') return 'The pod runs without SSH. Use the terminal, or add an SSH key.';
  return 'The pod can be reached over SSH when it runs.';
}

function Ports({ pod: { ports_mapping: ports, executor } }: PodTabProps) {
  const rows = Object.entries(ports).map(([inside, outside]) => ({
    inside,
    address: `${executor.executor_ip_address}:${outside}`,
  }));
  if (rows.length === 0) return null;
  return (
    <DataTable
      caption="Ports"
      rows={rows}
      rowKey={({ inside }) => inside}
      columns={[
        { key: 'inside', title: 'Port in the pod', cell: ({ inside }) => inside },
        {
          key: 'address',
          title: 'Address',
          cell: ({ inside, address }) => (
            <span className="row">
              <code>{address}</code>
              <CopyButton text={address} label={`Copy the address of port ${inside}`} />
            </span>
          ),
        },
      ]}
    />
  );
}

function Notebook({ url, pod }: { url: string | null } & PodTabProps) {
  const { jupyter_installation_status: status, jupyter_error: error } = pod;
  if (url !== null) {
    return (
      <p>
        <a href={url} rel="noreferrer" target="_blank">
          Open the notebook
        </a>
      </p>
    );
  }
  if (status !== 'FAILED') return null;
  return <p className="warn-text">The notebook server was not installed: {error}</p>;
}
