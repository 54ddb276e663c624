import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { startNameServer } from '../../../../test/fakes/external/name-server.ts';
import {
  createWebhookPost,
  isAllowedAddress,
  type Targets,
  targetProblem,
} from './webhook-post.ts';

it.each([
  ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.31.255.255'],
  ...['192.0.2.1', '192.168.1.1', '198.19.0.1', '224.0.0.1', '255.255.255.255'],
  ...['::', '::1', '::ffff:10.0.0.1', '::ffff:8.8.8.8', 'fc00::1', 'fe80::1', 'ff02::1'],
  ...['2001:db8::1', '2002:7f00:1::', '64:ff9b::a00:1', 'nonsense'],
])('does not allow requests to the address %s', (address) => {
  expect(isAllowedAddress(address, 'public')).toBe(false);
});

it.each(['8.8.8.8', '172.32.0.1', '2606:4700:4700::1111'])(
  'allows requests to the address %s',
  (address) => {
    expect(isAllowedAddress(address, 'public')).toBe(true);
    expect(isAllowedAddress(address, 'loopback')).toBe(false);
  },
);

it.each([
  ['https://example.com/hook', null],
  ['https://8.8.8.8:8443/hook', null],
  ['http://example.com/hook', 'does not begin with https://'],
  ['https://user:secret@example.com/', 'holds a user name or password'],
  ['https://10.0.0.1/', 'leads to a private or reserved address'],
  // Other notations of 127.0.0.1 and ::1 are rejected too.
  ['https://2130706433/', 'leads to a private or reserved address'],
  ['https://0x7f.1/', 'leads to a private or reserved address'],
  ['https://[::ffff:127.0.0.1]/', 'leads to a private or reserved address'],
  ['https://localhost:8000/', 'leads to a private or reserved address'],
  ['https://hook.LOCALHOST./', 'leads to a private or reserved address'],
  ['https://[::1]/', 'leads to a private or reserved address'],
  ['file:///etc/passwd', 'does not begin with https://'],
  ['hook', 'is not a URL'],
])('validates the URL %s', (url, problem) => {
  expect(targetProblem(url, 'public')).toBe(problem);
});

it('allows only loopback addresses in loopback mode', () => {
  expect(targetProblem('http://localhost:1234/hook', 'loopback')).toBeNull();
  expect(targetProblem('https://example.com/', 'loopback')).toMatch(/not on this host/);
  expect(targetProblem('ftp://localhost/', 'loopback')).toMatch(/neither/);
});

it('checks the address to which a host name resolves, and connects only to that address', async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = server.address() as { port: number };
    const post = createWebhookPost({ clock: systemClock, targets: 'public' });
    const { signal } = new AbortController();
    for (const host of ['localhost', '127.0.0.1']) {
      const url = `https://${host}:${port}/`;
      const { status, error } = await post({ url, headers: {}, body: '{}' }, signal);
      expect([status, error]).toEqual([
        null,
        `${host} resolves to an address to which webhooks are not sent`,
      ]);
    }
    expect(connections).toBe(0);
  } finally {
    server.close();
  }
});

it('connects to the address that it has checked, although the name server changes its answer', async () => {
  const reached: string[] = [];
  const server = createServer((socket) => {
    reached.push(socket.localAddress ?? '');
    socket.end('HTTP/1.1 204 No Content\r\n\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const names = await startNameServer();
  try {
    const { port } = server.address() as { port: number };
    const { resolve } = names;
    const send = (targets: Targets, ...answers: string[][]) => {
      names.answerWith(answers);
      const post = createWebhookPost({ clock: systemClock, targets, resolve });
      const url = `http://hook.example.com:${port}/`;
      return post({ url, headers: {}, body: '{}' }, new AbortController().signal);
    };
    // A second query would get an address to which webhooks are not sent.
    expect(await send('loopback', ['127.0.0.2'], ['10.0.0.1'])).toMatchObject({ status: 204 });
    expect(reached).toEqual(['127.0.0.2']);
    expect(names.queries()).toBe(1);
    const refusal = 'hook.example.com resolves to an address to which webhooks are not sent';
    for (const answer of [['127.0.0.3'], ['8.8.8.8', '127.0.0.3'], ['168.63.129.16']]) {
      expect(await send('public', answer)).toMatchObject({ status: null, error: refusal });
    }
    expect(await send('loopback', ['127.0.0.3', '10.0.0.1'])).toMatchObject({ error: refusal });
    expect(reached).toEqual(['127.0.0.2']);
  } finally {
    server.close();
    names.close();
  }
});
