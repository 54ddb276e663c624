import { createClient } from '../api/client.ts';
import { recordServerDate, recordSimulatedTime } from '../browser/server-time.ts';

/**
 * Client of a visitor, for log-ins. It sends no session, because a wrong password or signature (401) does not mean that
 * the session has ended.
 */
export const visitor = createClient({
  fetch: (input, init) => window.fetch(input, init),
  origin: '',
  token: () => null,
  onDate: recordServerDate,
  onSimulatedTime: recordSimulatedTime,
});
