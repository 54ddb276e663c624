import { expect, it } from 'vitest';
import { sessionIn, takeTicket } from './ticket.ts';

it.each([
  ['#ticket=abc', { kind: 'user', ticket: 'abc', rest: '' }],
  ['#a=1&ticket=x%2By', { kind: 'user', ticket: 'x+y', rest: '#a=1' }],
  ['#portal-ticket=abc', { kind: 'portal', ticket: 'abc', rest: '' }],
  ['#portal-ticket=p&ticket=u', { kind: 'user', ticket: 'u', rest: '' }],
  ['#ticket=', null],
  ['', null],
])('reads %j', (fragment, expected) => {
  expect(takeTicket(fragment)).toEqual(expected);
});

it.each([
  ['user', { token: 't', user: { email: 'a@example.com' } }, { token: 't', name: 'a@example.com' }],
  ['portal', { data: { token: 't', miner: { miner_hotkey: 'h' } } }, { token: 't', name: 'h' }],
  ['portal', { token: 't', user: { email: 'a@example.com' } }, null],
  ['user', { token: 7, user: null }, null],
  ['user', null, null],
] as const)('reads the session of a %s in %j', (kind, answer, session) => {
  expect(sessionIn(kind, answer)).toEqual(session);
});
