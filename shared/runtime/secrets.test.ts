import { expect, it } from 'vitest';
import { hidden, withOwnCredentials, withoutPasswords } from './secrets.ts';

it.each([
  ['postgres://me:hush@db.example:5432/market', 'postgres://[hidden]@db.example:5432/market'],
  ['postgres://me@db.example/market?password=hush', 'postgres://[hidden]@db.example/market'],
  ['postgres://db.example/market', 'postgres://[hidden]@db.example/market'],
  ['postgres://me:hu/sh@db.example/market', '[hidden]'],
  ['postgres://me:12/hush@db.example/market', '[hidden]'],
  ['postgres://me:hu?sh@db.example/market', '[hidden]'],
  ['postgres://me:hu@sh@db.example/market', '[hidden]'],
  ['postgres:/me:hush', '[hidden]'],
  ['/var/lib/hush.db', '[hidden]'],
  ['hush', '[hidden]'],
])('shows of the secret %s no more than %s', (text, shown) => {
  expect(hidden(text)).toBe(shown);
});

it.each([
  ['at https://me:hush@x.example/a: 401', 'at https://[hidden]@x.example/a: 401'],
  ['at https://me:hu/s@h@x.example/a', 'at https://[hidden]@x.example/a'],
  ['https://x.example/a, me@x.example', 'https://x.example/a, me@x.example'],
])('takes user and password out of %s', (text, clean) => {
  expect(withoutPasswords(text)).toBe(clean);
});

it('finds the credentials of a service of ours where this process has them, and nothing else', () => {
  const named = {
    AGENT_POLICY: '/run/credentials/podwright-agent.service/policy',
    AGENT_HOME: '/var/lib/podwright',
    OTHER: '/run/credentials/sshd.service/key',
  };
  expect(withOwnCredentials(named)).toBe(named);
  const folder = '/run/credentials/podwright-agent-update.service';
  expect(withOwnCredentials({ ...named, CREDENTIALS_DIRECTORY: folder })).toEqual({
    ...named,
    CREDENTIALS_DIRECTORY: folder,
    AGENT_POLICY: `${folder}/policy`,
  });
});
