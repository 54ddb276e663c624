import type { PodStatement } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { Facts } from '../parts/facts.tsx';
import { formatDuration } from '../parts/format.ts';
import { borneUsd, furtherPeriods } from '../pod/statement-lines.ts';

/** Totals of a statement, which the server sums over all periods, and a notice if some have no line. */
export function StatementFacts({ statement }: { statement: PodStatement }) {
  const { total, unposted, refunded, billed_seconds: seconds } = statement;
  const borne = borneUsd(statement);
  const further = furtherPeriods(statement);
  return (
    <>
      <Facts
        facts={[
          ['Total', <Money key="total" usd={total} isExact />],
          ['Of it used since the last posting', <Money key="unposted" usd={unposted} isExact />],
          ['Refunded', <Money key="refunded" usd={refunded} isExact />],
          ...(borne === 0
            ? []
            : [['Paid by the marketplace', <Money key="borne" usd={borne} isExact />] as const]),
          ['Charged time', formatDuration(seconds * 1_000)],
        ]}
      />
      {further === 0 ? null : (
        <p className="notice">
          The statement lists the oldest periods of this pod. One line, “Further periods”, sums the{' '}
          {further.toLocaleString('en-US')} later ones. The total includes all of them.
        </p>
      )}
    </>
  );
}
