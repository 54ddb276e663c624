import { expect, it } from 'vitest';
import { redactSecret, withoutPasswords, withServiceCredentials } from './secrets.ts';

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
])('redacts %s to %s', (text, shown) => {
  expect(redactSecret(text)).toBe(shown);
});

it.each([
  ['at https://me:hush@x.example/a: 401', 'at https://[hidden]@x.example/a: 401'],
  ['at https://me:hu/s@h@x.example/a', 'at https://[hidden]@x.example/a'],
  ['https://x.example/a, me@x.example', 'https://x.example/a, me@x.example'],
])('redacts user and password in %s', (text, clean) => {
  expect(withoutPasswords(text)).toBe(clean);
});

it('rewrites credential paths of our services to the folder of this process, and no other paths', () => {
  const named = {
    AGENT_POLICY: '/run/credentials/podwright-agent.service/policy',
    AGENT_HOME: '/var/lib/podwright',
    OTHER: '/run/credentials/sshd.service/key',
  };
  expect(withServiceCredentials(named)).toBe(named);
  const folder = '/run/credentials/podwright-agent-update.service';
  expect(withServiceCredentials({ ...named, CREDENTIALS_DIRECTORY: folder })).toEqual({
    ...named,
    CREDENTIALS_DIRECTORY: folder,
    AGENT_POLICY: `${folder}/policy`,
  });
});
