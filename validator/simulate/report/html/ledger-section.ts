/** Section about the ledger: balances by kind of account, and holds. Pure. */
import type { Report } from '../report.ts';
import { sum } from '../statistics.ts';
import type { Section } from './section.ts';
import { type Series, stepChart } from './svg.ts';
import { exactUsd, number, usd } from './text.ts';

const HOURS_PER_DAY = 24;
/** Names of kinds of accounts for readers. */
const NAMES: Readonly<Record<string, string>> = {
  user: 'renters: paid credit',
  granted: 'renters: granted credit',
  provider: 'providers: earnings',
  referral: 'referrals: earnings',
  'clearing:usage': 'clearing of usage',
  'platform:fee': 'platform: fees',
  'platform:credits_granted': 'platform: credit granted',
  'platform:absorbed': 'platform: losses absorbed',
  'external:topup': 'outside: top-ups',
  'external:payout': 'outside: payouts',
};

export function ledgerSection({ ledger }: Pick<Report, 'ledger'>): Section {
  const last = ledger.at(-1);
  const kinds = Object.keys(last?.balances_usd ?? {});
  const balance = (kind: string) => last?.balances_usd[kind] ?? 0;
  const total = sum(kinds.map(balance));
  const held: Series = {
    name: 'holds',
    points: ledger.map((at) => [at.at_hours / HOURS_PER_DAY, at.held_usd]),
  };
  const series = [
    ...kinds.map((kind) => ({
      name: NAMES[kind] ?? kind,
      points: ledger.map(
        (at) => [at.at_hours / HOURS_PER_DAY, at.balances_usd[kind] ?? 0] as const,
      ),
    })),
    held,
  ];
  return {
    id: 'ledger',
    finding: `At the end, providers had earned ${usd(balance('provider'))} and the platform ${usd(balance('platform:fee'))} in fees; the ledger sums to ${usd(Math.abs(total) < 1e-6 ? 0 : total)}`,
    note: 'Balances in USD by kind of account: credits minus debits. Credit that was granted to renters, and losses of the platform, are negative balances of the platform. Holds reserve a part of renters’ balances for rentals that begin.',
    svg:
      ledger.length === 0
        ? null
        : stepChart(
            series,
            { label: 'days since the start', format: number },
            { label: 'balance in USD', format: usd },
          ),
    legend: series.map(({ name }) => name),
    table: {
      head: ['Accounts', 'First balance', 'Last balance', 'Change'],
      rows: series.map(({ name, points }) => {
        const [from, to] = [points[0]?.[1] ?? 0, points.at(-1)?.[1] ?? 0];
        return [name, exactUsd(from), exactUsd(to), exactUsd(to - from)];
      }),
    },
  };
}
