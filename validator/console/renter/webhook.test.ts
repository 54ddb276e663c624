import { expect, it } from 'vitest';
import type { Webhook } from '../api/api.gen.ts';
import {
  addressRule,
  causeOf,
  choiceOf,
  describeEvents,
  eventsFrom,
  webhookStateOf,
} from './webhook.ts';

const webhook = (change: Partial<Webhook>): Webhook => ({
  id: 'w',
  url: 'https://hooks.example.com/',
  description: '',
  events: [],
  enabled: true,
  disabled_reason: null,
  failing_since: null,
  next_attempt_at: null,
  created_at: '2026-01-01T00:00:00',
  updated_at: '2026-01-01T00:00:00',
  ...change,
});
const FAILING = { failing_since: '2026-01-01T00:00:00' };

it.each<[Partial<Webhook>, string, RegExp | null]>([
  [{}, 'delivering', null],
  [FAILING, 'retrying', /repeated/],
  [{ enabled: false }, 'paused', null],
  [{ enabled: false, ...FAILING }, 'paused', null],
  [{ enabled: false, disabled_reason: 'gone' }, 'disabled', /410/],
  [{ enabled: false, disabled_reason: 'failing', ...FAILING }, 'disabled', /Repair/],
])('a webhook with %j is %s', (change, state, cause) => {
  expect(webhookStateOf(webhook(change))).toBe(state);
  if (cause === null) expect(causeOf(webhook(change))).toBeNull();
  else expect(causeOf(webhook(change))).toMatch(cause);
});

it.each([[[]], [['pod-fail', 'account', 'backup.failed', 'notice.status']]])(
  'a choice of %j is the same events again',
  (events) => expect(eventsFrom(choiceOf(events))).toEqual(events),
);

it('accepts outcomes with commas, spaces and lines', () => {
  const choice = { ...choiceOf([]), outcomes: ' backup.failed,\nrestore.failed  ' };
  expect(eventsFrom(choice)).toEqual(['backup.failed', 'restore.failed']);
});

it('describes an empty list as all events', () => {
  expect(describeEvents({ events: [] })).toBe('all');
});

it.each([
  ['public', /public https address/],
  ['loopback', /address of that computer/],
] as const)('states the rule of a server that allows %s addresses', (targets, hint) => {
  expect(addressRule({ webhook_targets: targets }).hint).toMatch(hint);
});

it('states no rule before the server has answered', () => {
  expect(addressRule(undefined)).toEqual({
    hint: 'The server sends each event to this address by POST.',
    example: '',
  });
});
