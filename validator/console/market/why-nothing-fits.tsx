import { Link } from 'wouter';
import { paths } from '../paths.ts';
import {
  type Explanation,
  type Nearest,
  nameOfConstraint,
  relaxedValue,
  textOfValue,
} from './constraints.ts';

type WhyNothingFitsProps = {
  explanation: Explanation;
  /** Replaces the value of a constraint; the empty text removes it. */
  onRelax: (constraint: string, value: string | number | boolean) => void;
};

/** The number of nodes that each constraint left, the nearest nodes, and buttons that relax the failed constraint. */
export function WhyNothingFits({ explanation, onRelax }: WhyNothingFitsProps) {
  const { funnel, nearest } = explanation;
  const failed = funnel.find(({ remaining }) => remaining === 0)?.constraint;
  return (
    <div className="why">
      <p>
        <strong>No node fits.</strong>{' '}
        {funnel[0]?.remaining === 0
          ? 'All nodes are rented at the moment. Request a notification, or try again in some minutes.'
          : 'Each line shows how many nodes are left after the filter.'}
      </p>
      <ol className="funnel">
        {funnel.map(({ constraint, remaining }) => (
          <li key={constraint} className={constraint === failed ? 'failed' : undefined}>
            <span>{nameOfConstraint(constraint)}</span>
            <span className="number">
              {remaining} {remaining === 1 ? 'node' : 'nodes'}
            </span>
          </li>
        ))}
      </ol>
      {nearest.length === 0 ? null : (
        <>
          <p>Nearest nodes:</p>
          <ul className="plain nearest">
            {nearest.map((entry) => (
              <li key={entry.executor_id} className="row">
                <NearestNode entry={entry} onRelax={onRelax} />
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function NearestNode({
  entry,
  onRelax,
}: {
  entry: Nearest[number];
  onRelax: WhyNothingFitsProps['onRelax'];
}) {
  const { constraint, requested, offered, executor_id: id, executor_huid: huid } = entry;
  const name = nameOfConstraint(constraint);
  const value = relaxedValue(entry);
  return (
    <>
      <Link href={paths.node(id)} title={id}>
        {huid}
      </Link>
      <span>
        {name}: you request {textOfValue(constraint, requested)}, the node offers{' '}
        {textOfValue(constraint, offered)}.
      </span>
      <button type="button" onClick={() => onRelax(constraint, value)}>
        {value === '' || value === false
          ? `Remove “${name}”`
          : `Set “${name}” to ${textOfValue(constraint, value)}`}
      </button>
    </>
  );
}
