import { beforeEach, expect, it, vi } from 'vitest';
import { createSessionStore, storageKey } from './session-store.ts';

let stored: Map<string, string>;
const storage = {
  getItem: (key: string) => stored.get(key) ?? null,
  setItem: (key: string, value: string) => void stored.set(key, value),
  removeItem: (key: string) => void stored.delete(key),
};
beforeEach(() => {
  stored = new Map();
});

const ADA = { token: 'a', name: 'ada@example.com' };

it('keeps the session for other tabs and later loads of the page', () => {
  const first = createSessionStore('user', storage);
  const second = createSessionStore('user', storage);
  const onChange = vi.fn();
  second.subscribe(onChange);
  first.start(ADA);
  second.reload();
  expect(second.get()).toEqual({ session: ADA, isExpired: false });
  expect(createSessionStore('user', storage).get().session).toEqual(ADA);
  first.end();
  second.reload();
  expect(second.get().session).toBeNull();
  expect(onChange).toHaveBeenCalledTimes(2);
});

it('expires only the session whose token was rejected', () => {
  const store = createSessionStore('user', storage);
  store.start(ADA);
  store.expire('older');
  expect(store.get().isExpired).toBe(false);
  store.expire('a');
  expect(store.get()).toEqual({ session: ADA, isExpired: true });
  store.start({ ...ADA, token: 'b' });
  expect(store.get().isExpired).toBe(false);
});

it.each(['', '{', '[]', '{"token":1,"name":"x"}', 'null'])('ignores the stored text %j', (text) => {
  stored.set(storageKey('portal'), text);
  expect(createSessionStore('portal', storage).get().session).toBeNull();
});
