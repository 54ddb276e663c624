import { useEffect, useRef } from 'react';
import { followAccountEvents } from '../api/account-events.ts';
import type { AccountEvent } from '../api/api.gen.ts';
import { sleep } from '../browser/clock.ts';
import { useClient } from './session.tsx';

/** Calls `onEvent` for each event of the account that happens while the component is shown. */
export function useAccountEvents(onEvent: (event: AccountEvent) => void): void {
  const client = useClient();
  const latest = useRef(onEvent);
  latest.current = onEvent;
  useEffect(() => {
    const gone = new AbortController();
    void followAccountEvents({
      client,
      sleep,
      signal: gone.signal,
      onEvent: (event) => latest.current(event),
    });
    return () => gone.abort();
  }, [client]);
}
