import { expect, it } from 'vitest';
import { PUBLIC_KEY } from '../../../../test/fakes/scenes/market-fixture.ts';
import { parsePublicKey } from '../../accounts/ssh-keys/public-key.ts';
import { chosenKeys } from './rental-request.ts';

const parsed = parsePublicKey(PUBLIC_KEY);
const registered = {
  id: 'k',
  account_id: 'a',
  name: 'mine',
  public_key: PUBLIC_KEY,
  fingerprint: 'key' in parsed ? parsed.key.fingerprint : '',
  created_at: 0,
  updated_at: 0,
};
const own = { id: 'k', name: 'mine', public_key: PUBLIC_KEY };

it.each([
  ['no key in the request', null],
  ['an empty list', []],
  ['blanks', ' '],
  ['the registered key', PUBLIC_KEY],
  ['the registered key twice', [PUBLIC_KEY, `${PUBLIC_KEY}\n`]],
])("uses the account's key: %s", (_, given) => {
  expect(chosenKeys(given, [registered])).toEqual([own]);
});

it('compares keys without their comments, and accepts unregistered keys', () => {
  const renamed = PUBLIC_KEY.replace('me@here', 'other');
  expect(chosenKeys(renamed, [registered])).toEqual([{ ...own, public_key: renamed }]);
  expect(chosenKeys(PUBLIC_KEY, [])).toEqual([{ id: null, name: '', public_key: PUBLIC_KEY }]);
});

it('rejects malformed keys, and a rental without any key', () => {
  expect(() => chosenKeys('hello', [registered])).toThrow('user_public_key');
  expect(() => chosenKeys(null, [])).toThrow('There is no SSH key');
});
