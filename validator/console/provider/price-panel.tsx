import { useEffect, useState } from 'react';
import type { ExecutorStatsResponse } from '../api/api.gen.ts';
import type { RewardEstimate } from '../api/portal.gen.ts';
import { after } from '../browser/clock.ts';
import { Money } from '../parts/amounts.tsx';
import { Facts } from '../parts/facts.tsx';
import { wordsOf } from '../parts/format.ts';
import { QueryPanel } from '../parts/panel.tsx';
import { useApi, usePortal } from '../session/queries.tsx';
import { marketOf, type PriceRange, positionOf } from './price-advice.ts';

type PriceProps = {
  gpuType: string;
  gpuCount: number;
  /** USD per GPU and hour, in the range; null for the reference price. */
  price: number | null;
  /** Allowed prices of the GPU. */
  range: PriceRange;
};

/** The price against the market's range, and the income that the API expects at that price. */
export function PricePanels(props: PriceProps) {
  const settled = useSettled(props);
  return (
    <>
      <MarketPanel {...settled} />
      <EstimatePanel {...settled} />
    </>
  );
}

function MarketPanel({ gpuType, price, range }: PriceProps) {
  const stats = useApi('GET /executors/stats', {});
  return (
    <QueryPanel
      title="The market’s prices"
      query={stats}
      isEmpty={(rows) => marketOf(rows, gpuType) === null}
      empty={
        <p>
          No node in the market offers this GPU. Its reference price is{' '}
          <Money usd={range.reference} per="GPU and hour" />.
        </p>
      }
    >
      {(rows) => <Market market={marketOf(rows, gpuType)} range={range} price={price} />}
    </QueryPanel>
  );
}

function Market({
  market,
  range,
  price,
}: Pick<PriceProps, 'range' | 'price'> & { market: ExecutorStatsResponse | null }) {
  if (market === null) return null;
  const asked = price ?? range.reference;
  return (
    <>
      <p role="status">
        <Money usd={asked} per="GPU and hour" />: {positionOf(asked, market)}
      </p>
      <Facts
        facts={[
          ['Lowest offer', <Money key="min" usd={market.min_price_per_gpu} />],
          ['Average offer', <Money key="avg" usd={market.avg_price_per_gpu} />],
          ['Highest offer', <Money key="max" usd={market.max_price_per_gpu} />],
          ['Reference price', <Money key="reference" usd={range.reference} />],
          [
            'Allowed',
            <span key="allowed">
              <Money usd={range.min} /> to <Money usd={range.max} />
            </span>,
          ],
          ['Rented GPUs', `${market.rented_gpu_count} of ${market.total_gpu_count}`],
        ]}
      />
    </>
  );
}

function EstimatePanel({ gpuType, gpuCount, price }: PriceProps) {
  const query = {
    gpu_type: gpuType,
    gpu_count: gpuCount,
    ...(price === null ? {} : { gpu_price: price }),
  };
  const estimate = usePortal('GET /machines/estimated-rewards', { query });
  return (
    <QueryPanel title="Expected income at this price" query={estimate}>
      {({ data }) => <Estimate estimate={data} />}
    </QueryPanel>
  );
}

function Estimate({ estimate }: { estimate: RewardEstimate }) {
  const {
    rental_income_per_hour: income,
    platform_fee_per_hour: fee,
    expected_utilization: utilization,
    reward_obstacles: obstacles,
  } = estimate;
  return (
    <>
      <Facts
        facts={[
          ['While all GPUs are rented', <Money key="income" usd={income} per="hour" />],
          ['Fee of the marketplace', <Money key="fee" usd={fee} per="hour" />],
          ['You receive', <Money key="net" usd={income - fee} per="hour" />],
          ['Such GPUs rented now', percent(utilization)],
          [
            'At that rate',
            <Money key="expected" usd={(income - fee) * utilization} per="hour on average" />,
          ],
          ['Weight while rented', percent(estimate.rewards_while_rented)],
          ['Weight while free', percent(estimate.rewards_while_idle)],
        ]}
      />
      {obstacles.length === 0 ? null : (
        <p className="warn-text">
          Rules that would prevent rewards: {obstacles.map(wordsOf).join(', ')}.
        </p>
      )}
      <p className="hint">
        An estimate from the present market. The weight is the node’s share of all weights of the
        subnet, from which rewards result. Running pods keep their price.
      </p>
    </>
  );
}

function percent(share: number): string {
  return `${(share * 100).toLocaleString('en-US', { maximumFractionDigits: 3 })} %`;
}

const SETTLE_MS = 400;

/** Returns the values after they have not changed for a moment, so that typing sends few requests. */
function useSettled({ gpuType, gpuCount, price, range }: PriceProps): PriceProps {
  const [settled, setSettled] = useState({ gpuType, gpuCount, price, range });
  const { min, max, reference } = range;
  useEffect(
    () =>
      after(SETTLE_MS, () =>
        setSettled({ gpuType, gpuCount, price, range: { min, max, reference } }),
      ),
    [gpuType, gpuCount, price, min, max, reference],
  );
  return settled;
}
