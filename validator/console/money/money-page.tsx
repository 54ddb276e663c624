import type { User } from '../api/api.gen.ts';
import { parseApiTime } from '../browser/clock.ts';
import { Money } from '../parts/amounts.tsx';
import { Facts } from '../parts/facts.tsx';
import { formatDuration } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time, useNow } from '../parts/time.tsx';
import { useApi } from '../session/queries.tsx';
import { AutoTopUpPanel } from './auto-top-up.tsx';
import { Journal } from './journal-panel.tsx';
import { LowBalancePanel } from './low-balance.tsx';
import { Transfers } from './transfers.tsx';

const REFETCH_MS = 15_000;

export function MoneyPage() {
  const account = useApi('GET /users/me', {}, { refetchMs: REFETCH_MS });
  return (
    <Page title="Money">
      <QueryPanel title="Balance" query={account}>
        {(user) => <Balance user={user} />}
      </QueryPanel>
      <Journal account={account} />
      <AutoTopUpPanel />
      <LowBalancePanel />
      <Transfers />
    </Page>
  );
}

function Balance({ user }: { user: User }) {
  return (
    <Facts
      facts={[
        [
          'Balance of the journal',
          <Money key="posted" usd={user.balance + user.unposted} isExact />,
        ],
        ['Used since the last posting', <Money key="unposted" usd={0 - user.unposted} isExact />],
        ['Balance', <Money key="balance" usd={user.balance} isExact />],
        ['Reserved for new pods', <Money key="held" usd={user.held} isExact />],
        ['Available', <Money key="available" usd={user.available} isExact />],
        ['Spending', <Money key="burn" usd={user.burn_per_hour} per="hour" />],
        ['The money lasts', <Forecast key="forecast" user={user} />],
      ]}
    />
  );
}

function Forecast({ user: { runs_out_at: runsOutAt } }: { user: User }) {
  const now = useNow(60_000);
  const atMs = runsOutAt === null ? null : parseApiTime(runsOutAt);
  if (atMs === null) return <>no pod is charged</>;
  return (
    <>
      {formatDuration(Math.max(atMs - now, 0))} <span className="faint small">until </span>
      <Time value={runsOutAt} />
      <div className="small">Then all pods stop, and are deleted ten minutes later.</div>
    </>
  );
}
