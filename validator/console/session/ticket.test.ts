import { expect, it } from 'vitest';
import { takeTicket } from './ticket.ts';

it.each([
  ['#ticket=abc', { ticket: 'abc', rest: '' }],
  ['#a=1&ticket=x%2By', { ticket: 'x+y', rest: '#a=1' }],
  ['#ticket=', null],
  ['', null],
])('reads %j', (fragment, expected) => {
  expect(takeTicket(fragment)).toEqual(expected);
});
