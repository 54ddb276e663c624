/** Section about the ledger: balances by kind of account, and holds. Pure. */
import type { Report } from '../report.ts';
import { sum } from '../statistics.ts';
import { bandsOf } from './fault-bands.ts';
import type { Section } from './section.ts';
import { type Series, stepChart } from './svg.ts';
import { number, tickUsd, usd } from './text.ts';

const HOURS_PER_DAY = 24;
/** Names of kinds of accounts for readers. */
const NAMES: Readonly<Record<string, string>> = {
  user: 'renters: paid credit',
  granted: 'renters: granted credit',
  provider: 'providers: earnings',
  referral: 'referrals: earnings',
  'clearing:usage': 'clearing of usage',
  'platform:fee': 'marketplace: fees',
  'platform:credits_granted': 'marketplace: credit granted',
  'platform:absorbed': 'marketplace: losses absorbed',
  'external:topup': 'outside: top-ups',
  'external:payout': 'outside: payouts',
};

/** Granted credit and its source, beside which other balances would not be visible in a plot. */
const CREDIT: ReadonlySet<string> = new Set(['granted', 'platform:credits_granted']);

export function ledgerSection(report: Pick<Report, 'ledger' | 'faults' | 'run'>): Section {
  const { ledger } = report;
  const shades = bandsOf(report);
  const last = ledger.at(-1);
  const kinds = Object.keys(last?.balances_usd ?? {});
  const balance = (kind: string) => last?.balances_usd[kind] ?? 0;
  const total = sum(kinds.map(balance));
  const held: Series = {
    name: 'holds',
    points: ledger.map((at) => [at.at_hours / HOURS_PER_DAY, at.held_usd]),
  };
  const seriesOf = (kind: string): Series => ({
    name: NAMES[kind] ?? kind,
    points: ledger.map((at) => [at.at_hours / HOURS_PER_DAY, at.balances_usd[kind] ?? 0]),
  });
  const series = [...kinds.map(seriesOf), held];
  const drawn = [...kinds.filter((kind) => !CREDIT.has(kind)).map(seriesOf), held];
  return {
    id: 'ledger',
    finding: `At the end of the period, providers had earned ${usd(balance('provider'))} and the marketplace ${usd(balance('platform:fee'))} in fees; the ledger sums to ${usd(total)}`,
    notes: [
      'Balances in USD by kind of account: credits minus debits. Credit that was granted to renters, and losses of the marketplace, are negative balances of the marketplace. Holds reserve a part of renters’ balances for rentals that begin. The plot leaves out granted credit, which is much more than all other balances.',
    ],
    plot:
      ledger.length === 0
        ? null
        : stepChart(drawn, {
            x: { label: 'days since the start', format: number },
            y: { label: 'balance in USD', format: tickUsd },
            bands: shades.bands,
          }),
    legend: drawn.map(({ name }) => name),
    bands: shades.meanings,
    table: {
      head: ['Accounts', 'First balance', 'Last balance', 'Change'],
      rows: series.map(({ name, points }) => {
        const [from, to] = [points[0]?.[1] ?? 0, points.at(-1)?.[1] ?? 0];
        return [name, usd(from), usd(to), usd(to - from)];
      }),
    },
  };
}
