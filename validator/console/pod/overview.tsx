import { Money } from '../parts/amounts.tsx';
import { CommandBlock } from '../parts/command-block.tsx';
import { Facts } from '../parts/facts.tsx';
import { Panel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import type { PodTabProps } from './pod-page.tsx';

export function PodOverview({ pod }: PodTabProps) {
  const { executor, template } = pod;
  return (
    <>
      <Connection pod={pod} />
      <Panel title="Pod">
        <Facts
          facts={[
            ['GPUs', pod.gpu_count === '0' ? 'none' : `${pod.gpu_count} × ${pod.gpu_name}`],
            ['Processors', `${pod.cpu_count} × ${pod.cpu_name}`],
            ['Template', template.name],
            ['Image', `${template.docker_image}:${template.docker_image_tag}`],
            ['Node', `${executor.huid} (${executor.machine_name})`],
            ['Price', <Money key="price" usd={pod.price} per="hour" />],
            ['Spent', <Money key="spent" usd={pod.spent_usd} />],
            ['Rented', <Time key="rented" value={pod.created_at} />],
            ['Scheduled removal', <Time key="removal" value={pod.removal_scheduled_at} />],
            ['Budget', <Money key="budget" usd={pod.max_spend_usd} />],
            ['Id', <code key="id">{pod.id}</code>],
          ]}
        />
      </Panel>
    </>
  );
}

function Connection({ pod }: PodTabProps) {
  const { ssh_connect_cmd: ssh, known_hosts: knownHosts, jupyter_url: notebook } = pod;
  const ports = Object.entries(pod.ports_mapping);
  return (
    <Panel title="Connect">
      {ssh === null ? (
        <p className="empty">The pod can be reached over SSH when it runs.</p>
      ) : (
        <CommandBlock label="Log in over SSH" command={ssh} />
      )}
      {knownHosts === null ? null : (
        <CommandBlock label="Line for ~/.ssh/known_hosts" command={knownHosts} />
      )}
      {ports.length === 0 ? null : (
        <Facts
          facts={ports.map(([inside, outside]) => [
            `Port ${inside}`,
            <code key={inside}>
              {pod.executor.executor_ip_address}:{outside}
            </code>,
          ])}
        />
      )}
      {notebook === null ? null : (
        <p>
          <a href={notebook} rel="noreferrer" target="_blank">
            Open the notebook
          </a>
        </p>
      )}
    </Panel>
  );
}
