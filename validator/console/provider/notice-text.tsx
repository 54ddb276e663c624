import type { NoticePeriod } from '../api/portal.gen.ts';
import { Time } from '../parts/time.tsx';

/** An announcement in a sentence. */
export function NoticeText({ notice }: { notice: NoticePeriod }) {
  const { starting_at: start, period_in_minute: minutes, reason } = notice;
  return (
    <>
      {notice.permanent_removal
        ? 'Removal announced for '
        : `${minutes} minutes of maintenance at `}
      <Time value={start} />
      {reason === null ? null : ` (${reason})`}
    </>
  );
}
