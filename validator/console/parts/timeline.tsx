import type { ReactNode } from 'react';
import { Time } from './time.tsx';
import type { Tone } from './tone.ts';

export type TimelineEntry = {
  key: string;
  /** Time of the API. */
  at: string;
  title: ReactNode;
  detail?: ReactNode;
  tone: Tone;
};

/** Events in order, each with its time and cause. */
export function Timeline({ entries }: { entries: readonly TimelineEntry[] }) {
  return (
    <ol className="timeline">
      {entries.map(({ key, at, title, detail, tone }) => (
        <li key={key} className={tone}>
          <div>
            <strong>{title}</strong>{' '}
            <span className="faint small">
              <Time value={at} />
            </span>
          </div>
          {detail === undefined || detail === null ? null : <div>{detail}</div>}
        </li>
      ))}
    </ol>
  );
}
