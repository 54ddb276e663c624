import { Link } from 'wouter';
import type { PodListItemResponse, User } from '../api/api.gen.ts';
import { parseApiTime } from '../browser/clock.ts';
import { Money } from '../parts/amounts.tsx';
import { Facts } from '../parts/facts.tsx';
import { formatDuration } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { Time, useNow } from '../parts/time.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';
import { LatestEvents } from './latest-events.tsx';
import { attentionOf, toneOf } from './pod-actions.ts';

const REFETCH_MS = 15_000;
const DAY_MS = 86_400_000;

export function HomePage() {
  const account = useApi('GET /users/me', {}, { refetchMs: REFETCH_MS });
  const pods = useApi('GET /pods', {}, { refetchMs: REFETCH_MS });
  return (
    <Page title="Home" actions={<Link href={paths.market}>Rent a pod</Link>}>
      <QueryPanel title="Money" query={account}>
        {(user) => <Spending user={user} />}
      </QueryPanel>
      <QueryPanel
        title="Needs attention"
        query={pods}
        isEmpty={(rows) => needing(rows).length === 0}
        empty="Nothing needs your attention."
      >
        {(rows) => <Attention pods={needing(rows)} />}
      </QueryPanel>
      <QueryPanel
        title="Pods"
        query={pods}
        isEmpty={({ length }) => length === 0}
        empty={
          <p>
            You have no pods. <Link href={paths.market}>Choose a node</Link> to rent one.
          </p>
        }
      >
        {(rows) => (
          <p>
            {rows.filter(({ status }) => status === 'RUNNING').length} of {rows.length} pods run.{' '}
            <Link href={paths.pods}>All pods</Link>
          </p>
        )}
      </QueryPanel>
      <LatestEvents />
    </Page>
  );
}

function Spending({ user }: { user: User }) {
  return (
    <Facts
      facts={[
        ['Spending', <Money key="burn" usd={user.burn_per_hour} per="hour" />],
        ['Time left', <TimeLeft key="left" runsOutAt={user.runs_out_at} />],
        ['Balance', <Money key="balance" usd={user.balance} />],
        ['Available', <Money key="available" usd={user.available} />],
      ]}
    />
  );
}

function TimeLeft({ runsOutAt }: { runsOutAt: string | null }) {
  const now = useNow(60_000);
  const atMs = runsOutAt === null ? null : parseApiTime(runsOutAt);
  if (atMs === null) return <>no pod is charged</>;
  const leftMs = Math.max(atMs - now, 0);
  return (
    <span className={leftMs < DAY_MS ? 'warn-text' : undefined}>
      {formatDuration(leftMs)} <span className="faint small">until </span>
      <Time value={runsOutAt} />
    </span>
  );
}

function needing(pods: readonly PodListItemResponse[]): PodListItemResponse[] {
  return pods.filter((pod) => attentionOf(pod) !== null);
}

function Attention({ pods }: { pods: readonly PodListItemResponse[] }) {
  return (
    <ul className="plain">
      {pods.map((pod) => (
        <li key={pod.id}>
          <Status name={pod.status} tone={toneOf(pod.status)} />{' '}
          <Link href={paths.pod(pod.id)}>{pod.pod_name}</Link>: {attentionOf(pod)}
        </li>
      ))}
    </ul>
  );
}
