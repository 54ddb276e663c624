import { expect, it } from 'vitest';
import { eventWords, reasonWords } from './event-words.ts';

const event = (members: Partial<Parameters<typeof eventWords>[0]>) => ({
  sub_event_type: 'pod-lifecycle.status',
  detail: null,
  error: null,
  from_status: 'PENDING',
  to_status: 'PENDING',
  reason: null,
  ...members,
});

it('names a step of the start, without a change of the status', () => {
  expect(eventWords(event({ detail: 'pulling' }))).toEqual({
    title: 'The node downloads the image',
    change: null,
    reason: null,
    note: null,
  });
});

it('shows a change of the status', () => {
  const created = event({ sub_event_type: 'pod-create.success', to_status: 'RUNNING' });
  expect(eventWords(created)).toMatchObject({ title: 'The pod runs', change: 'Pending → Running' });
  const rented = event({ sub_event_type: 'pod-rent.success', from_status: null });
  expect(eventWords(rented)).toMatchObject({ title: 'Pod rented', change: null });
});

it('omits the reason that the actor already shows, and explains others', () => {
  const requested = event({ sub_event_type: 'pod-delete.requested', reason: 'user_initiated' });
  expect(eventWords(requested).reason).toBe(null);
  expect(eventWords(event({ reason: 'balance_exhausted' })).reason).toBe('The balance is spent.');
  expect(reasonWords('user_initiated')).toBe('Deleted on your request.');
  expect(reasonWords('a_new_one')).toBe('A new one.');
});

it('shows errors, sentences and details that are not the title', () => {
  const failed = event({ sub_event_type: 'backup.failed', error: 'The storage is full' });
  expect(eventWords(failed)).toMatchObject({
    title: 'The backup failed',
    note: 'The storage is full',
  });
  const partial = event({ sub_event_type: 'backup.success', detail: 'partial' });
  expect(eventWords(partial).note).toBe('Some files could not be read');
  const balance = event({ sub_event_type: 'billing.status', detail: 'balance low: $1.00' });
  expect(eventWords(balance)).toMatchObject({
    title: 'Balance low: $1.00',
    note: null,
  });
});

it('uses the detail of an event of the account as its title', () => {
  const fulfilled = { sub_event_type: 'account.status', detail: 'machine_request_fulfilled' };
  expect(eventWords(event(fulfilled))).toMatchObject({
    title: 'Machine request fulfilled',
    note: null,
  });
});

it('shows unknown types and details as words', () => {
  expect(
    eventWords(event({ sub_event_type: 'new-type.status', detail: 'a_detail' })),
  ).toMatchObject({
    title: 'New type status',
    note: 'A detail',
  });
});
