import { Link } from 'wouter';
import { formatDuration } from '../parts/format.ts';
import { SimulatedMark, Status } from '../parts/status.tsx';
import { Time } from '../parts/time.tsx';
import { paths } from '../paths.ts';
import { attentionOf, phaseBeside, toneOf } from '../renter/pod-actions.ts';
import type { PodTabProps } from '../renter/pod-page.tsx';
import { reasonWords } from './event-words.ts';
import { remedyOf } from './remedies.ts';
import { basisOf } from './start-steps.ts';

/** State of a pod: status, phase, time until it is ready, and why it needs its renter. */
export function PodStatusLine({ pod }: PodTabProps) {
  const { status, phase, message, executor, reason_code: reason } = pod;
  const remedy = remedyOf(reason);
  const attention = attentionOf(pod);
  return (
    <div>
      <Status name={status} tone={toneOf(status)} />
      <span className="faint"> {phaseBeside({ status, phase })}</span>{' '}
      <SimulatedMark isSimulated={executor.simulated} />
      <ReadyTime pod={pod} />
      {pod.deleted_at === undefined ? null : (
        <p>
          Deleted at <Time value={pod.deleted_at} />.{' '}
          {reason === null ? null : <span title={reason}>{reasonWords(reason)}</span>}{' '}
          <Link href={paths.market}>Rent a pod</Link>
        </p>
      )}
      {attention === null ? message === null ? null : <p>{message}</p> : <p>{attention}</p>}
      {reason === null || pod.deleted_at !== undefined ? null : (
        <p className="small">
          <code>{reason}</code> {remedy}
        </p>
      )}
    </div>
  );
}

function ReadyTime({ pod: { estimated_ready_seconds: seconds, eta_basis: basis } }: PodTabProps) {
  if (seconds === null) return null;
  const grounds = basisOf(basis);
  return (
    <p>
      Ready in about {formatDuration(Math.max(seconds, 1) * 1_000)}
      {grounds === '' ? null : <span className="faint"> ({grounds})</span>}
    </p>
  );
}
