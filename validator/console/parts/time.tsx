import { useEffect, useState } from 'react';
import { dateOf, every, parseApiTime } from '../browser/clock.ts';
import { nowMs } from '../browser/server-time.ts';
import { formatDistance } from './format.ts';

const TICK_MS = 1_000;
const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** Current time, which updates at the interval. */
export function useNow(intervalMs = TICK_MS): number {
  const [now, setNow] = useState(nowMs);
  useEffect(() => every(intervalMs, () => setNow(nowMs())), [intervalMs]);
  return now;
}

/** A time of the API in local time, with UTC on hover. Null is shown as a dash, a malformed time as it is. */
export function Time({ value, relative = false }: { value: string | null; relative?: boolean }) {
  if (value === null) return <>–</>;
  const atMs = parseApiTime(value);
  if (atMs === null) return <>{value}</>;
  const utc = dateOf(atMs).toISOString();
  return (
    <time dateTime={utc} title={`${utc.slice(0, 19).replace('T', ' ')} UTC`}>
      {relative ? <Distance atMs={atMs} /> : LOCAL.format(dateOf(atMs))}
    </time>
  );
}

function Distance({ atMs }: { atMs: number }) {
  return <>{formatDistance(atMs, useNow(10_000))}</>;
}
