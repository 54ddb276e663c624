import type { ExecutorDetailResponse } from '../api/api.gen.ts';
import { Money } from '../parts/amounts.tsx';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { useAction } from '../session/queries.tsx';

export type Node = ExecutorDetailResponse;

/** Price of all GPUs of the node, with the price of one. */
export function NodePrice({ node }: { node: Node }) {
  return (
    <>
      <Money usd={node.price_per_hour} per="h" />
      <div className="small faint">
        <Money usd={node.price_per_gpu} per="GPU" />
      </div>
    </>
  );
}

/** Country and city; a place that the provider only entered is marked. */
export function NodePlace({ node }: { node: Node }) {
  const { location, location_check: check } = node;
  if (location === null) return <>unknown</>;
  const { city, region_name: region, country } = location;
  return (
    <>
      {[city ?? region, country].filter((part) => part !== null && part !== '').join(', ')}
      {check === 'confirmed' ? <span className="small faint"> (confirmed)</span> : null}
    </>
  );
}

/** Percent over 30 days. */
export function Reliability({ score }: { score: number | null }) {
  if (score === null) return <span className="faint">less than a day observed</span>;
  return <span className="number">{(score * 100).toFixed(1)} %</span>;
}

/** Adds the node to the account's bookmarks, or removes it. */
export function BookmarkButton({ node }: { node: Node }) {
  const add = useAction('POST /bookmarks');
  const remove = useAction('DELETE /bookmarks/{executor_id}');
  const isBookmarked = node.is_bookmarked === true;
  const error = add.error ?? remove.error;
  const toggle = () => {
    if (isBookmarked) remove.mutate({ params: { executor_id: node.id } });
    else add.mutate({ body: { executor_id: node.id, bookmarked: true } });
  };
  return (
    <>
      <button
        type="button"
        aria-pressed={isBookmarked}
        aria-label={`Bookmark ${node.huid}`}
        disabled={add.isPending || remove.isPending}
        onClick={toggle}
      >
        {isBookmarked ? '★' : '☆'}
      </button>
      {error === null ? null : <FailureNotice error={error} />}
    </>
  );
}
