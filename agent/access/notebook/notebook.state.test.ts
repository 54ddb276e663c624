import { expect, it } from 'vitest';
import {
  ended,
  failed,
  MAX_RESTARTS,
  notebookView,
  requestedRow,
  running,
} from './notebook.state.ts';

const REQUEST = { internal_port: 8888, request: 1, token: 'f'.repeat(32) };
const NEW = requestedRow('pod', REQUEST, null, 1_000);
const RUNNING = { ...NEW, ...running(2_000) };
const message = 'it ended';
const notReady = { reason: 'NotebookNotReady', message } as const;

it('omits the token from the view', () => {
  expect(JSON.stringify(notebookView(RUNNING))).not.toContain(REQUEST.token);
});

it('reports a failed first start at once, and the failure of a server that had been running after many restarts', () => {
  expect(failed(NEW, notReady, 3_000)).toMatchObject({ status: 'failed', ...notReady });

  const waits: number[] = [];
  let row = { ...RUNNING, ...ended(RUNNING, { nowMs: 3_000, podBeganMs: 500, message }) };
  while (row.status === 'restarting') {
    waits.push(row.next_try_ms - 3_000);
    row = { ...row, ...failed(row, notReady, 3_000) };
  }
  expect(row).toMatchObject({ status: 'failed', reason: 'NotebookNotReady' });
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000]);
  expect(waits).toHaveLength(MAX_RESTARTS);
});

it('does not count the end of a server as a failure if its pod ended too', () => {
  const tired = { ...RUNNING, attempts: MAX_RESTARTS };
  const rebooted = ended(tired, { nowMs: 9_000, podBeganMs: 8_000, message });
  expect(rebooted).toMatchObject({ status: 'restarting', attempts: 0, next_try_ms: 0 });
  const alone = ended(tired, { nowMs: 9_000, podBeganMs: 500, message });
  expect(alone).toMatchObject({ status: 'failed', reason: 'NotebookNotReady' });
});

it('retains the exec id of the previous request, so that its process can be ended', () => {
  const before = { ...RUNNING, exec_id: 'abc' };
  const next = requestedRow('pod', { ...REQUEST, request: 2 }, before, 5_000);
  expect(next).toMatchObject({ exec_id: 'abc', status: 'installing', attempts: 0 });
});
