import { Link } from 'wouter';
import type { ExplainedExecutorList } from '../api/api.gen.ts';
import { Pager } from '../parts/data-table.tsx';
import { Page } from '../parts/page.tsx';
import { Panel, QueryPanel } from '../parts/panel.tsx';
import { useUrlState } from '../parts/use-url-state.tsx';
import { useApi } from '../session/queries.tsx';
import { Comparison } from './comparison.tsx';
import { totalOf } from './constraints.ts';
import { FilterForm } from './filter-form.tsx';
import {
  comparedIn,
  MARKET_CHECKS,
  MARKET_DEFAULTS,
  type MarketState,
  PAGE_SIZE,
  queryOfMarket,
  toggleCompared,
} from './filters.ts';
import { MachineRequests, NotifyMe } from './machine-requests.tsx';
import './market.css';
import { NodeTable } from './node-table.tsx';
import { PriceRanges } from './price-ranges.tsx';
import { specPath } from './spec.ts';
import { WhyNothingFits } from './why-nothing-fits.tsx';

/** Nodes that can be rented. The server filters, sorts and pages; the address has all filters. */
export function MarketPage() {
  const [state, change] = useUrlState<MarketState>(MARKET_DEFAULTS, MARKET_CHECKS);
  const list = useApi('GET /executors', { query: queryOfMarket(state) });
  const compared = comparedIn(state);
  const compare = (id: string) => {
    change({ compare: toggleCompared(state, id), page: state.page });
  };
  const { page: _page, sort: _sort, compare: _compare, ...filters } = state;
  return (
    <Page
      title="Market"
      lead="Prices are per hour, charged per second. The total is the price of all GPUs of a node."
      actions={
        <>
          <Link href={specPath(filters)}>Rent by specification</Link>
          <NotifyMe key={JSON.stringify(filters)} filters={filters} />
        </>
      }
    >
      <Panel title="Filters">
        <FilterForm
          key={JSON.stringify(filters)}
          state={filters}
          error={list.error}
          onChange={change}
        />
      </Panel>
      <Comparison ids={compared} onRemove={compare} />
      <QueryPanel
        title="Nodes"
        query={list}
        actions={<SortSelect sort={state.sort} onSort={(sort) => change({ sort })} />}
      >
        {(answer) => (
          <NodeList
            list={explainedOf(answer)}
            state={state}
            onCompare={compare}
            onPage={(page) => change({ page })}
            onRelax={(constraint, value) =>
              change({ [constraint]: constraint === 'bookmarked' ? false : String(value) })
            }
          />
        )}
      </QueryPanel>
      <MachineRequests />
      <PriceRanges />
    </Page>
  );
}

function SortSelect({ sort, onSort }: { sort: string; onSort: (sort: string) => void }) {
  return (
    <label className="row">
      Sort by
      <select value={sort} onChange={({ target }) => onSort(target.value)}>
        <option value="price">lowest price per GPU</option>
        <option value="reliability">highest reliability</option>
      </select>
    </label>
  );
}

type NodeListProps = {
  list: ExplainedExecutorList;
  state: MarketState;
  onCompare: (id: string) => void;
  onPage: (page: number) => void;
  onRelax: (constraint: string, value: string | number | boolean) => void;
};

function NodeList({ list, state, onCompare, onPage, onRelax }: NodeListProps) {
  const total = totalOf(list.funnel);
  if (total === 0) return <WhyNothingFits explanation={list} onRelax={onRelax} />;
  return (
    <>
      <NodeTable nodes={list.executors} compared={comparedIn(state)} onCompare={onCompare} />
      <Pager
        page={state.page}
        hasNext={state.page * PAGE_SIZE < total}
        total={total}
        onPage={onPage}
      />
    </>
  );
}

/** The request has `explain`, so the answer is never a bare array. */
function explainedOf(answer: ExplainedExecutorList | unknown[]): ExplainedExecutorList {
  if (Array.isArray(answer)) throw new TypeError('the list of nodes has no explanation');
  return answer;
}
