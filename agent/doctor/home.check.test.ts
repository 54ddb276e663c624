import { expect, it } from 'vitest';
import { findingsOf } from '#shared/check/doctor.ts';
import { HOME_CHECKS, type HomeFacts, holderOf } from './home.check.ts';

const GATEWAY = { pods: 2, pid: 7, alive: true, complaints: [] };
const GOOD: HomeFacts = {
  home: '/var/lib/podwright',
  folder: { value: { mode: 0o700, owner: 0, writable: true } },
  holder: { value: 42 },
  moved: null,
  store: { value: null },
  gateway: { value: GATEWAY },
  busybox: { path: '/bin/busybox', runnable: true },
  sftpServer: '/usr/lib/openssh/sftp-server',
};
const IDLE = { holder: { value: null } };
const gateway = (change: object) => ({ gateway: { value: { ...GATEWAY, ...change } } });

it.each<[string, string, string, Partial<HomeFacts>, boolean]>([
  ['state-folder', 'ok', 'mode 0700', {}, true],
  ['store', 'ok', 'undamaged', {}, true],
  ['store', 'fail', 'agent.sqlite is damaged: page 3', { store: { value: 'page 3' } }, true],
  ['state-folder', 'ok', 'does not exist yet', { folder: { value: null } }, false],
  [
    'state-folder',
    'warn',
    'mode 0755',
    { folder: { value: { mode: 0o755, owner: 0, writable: true } } },
    true,
  ],
  [
    'state-folder',
    'fail',
    'not writable',
    { folder: { value: { mode: 0o700, owner: 0, writable: false } } },
    true,
  ],
  ['agent', 'ok', 'process 42', {}, true],
  ['agent', 'fail', 'does not answer', {}, false],
  ['agent', 'warn', 'does not run', IDLE, false],
  ['agent', 'warn', 'its home is not', IDLE, true],
  ['agent', 'fail', 'another machine', { ...IDLE, moved: 'used on another machine' }, false],
  ['agent', 'unknown', 'EACCES', { holder: { problem: 'EACCES' } }, false],
  ['ssh-gateway', 'ok', 'serves 2 pods', {}, true],
  ['ssh-gateway', 'fail', 'process 7 has ended', gateway({ alive: false }), true],
  [
    'ssh-gateway',
    'warn',
    'never reported',
    gateway({ alive: false, pid: null, pods: null }),
    false,
  ],
  ['ssh-gateway', 'warn', 'port 20001', gateway({ complaints: ['port 20001: no shell'] }), true],
  ['ssh-gateway', 'unknown', 'EACCES', { gateway: { problem: 'EACCES' } }, true],
  ['busybox', 'fail', 'missing', { busybox: { path: '/bin/busybox', runnable: false } }, true],
  ['sftp-server', 'warn', 'missing', { sftpServer: null }, true],
])('reports the check %s as %s: %s', (id, status, words, change, answers) => {
  const found = findingsOf(HOME_CHECKS, { ...GOOD, ...change, answers }).find(
    (each) => each.id === id,
  );
  expect(found).toMatchObject({ status, finding: expect.stringContaining(words) });
});

it('returns the process that holds a file’s write lock, and null for a read lock', () => {
  const locks = [
    '1: POSIX  ADVISORY  READ 10 fe:00:77 1073741826 1073742335',
    '2: POSIX  ADVISORY  WRITE 11 fe:00:777 0 EOF',
    '3: FLOCK  ADVISORY  WRITE 12 fe:00:77 0 EOF',
    '4: POSIX  ADVISORY  WRITE 13 fe:00:77 1073741824 1073742335',
  ];
  expect(holderOf(locks.join('\n'), 77)).toBe(13);
  expect(holderOf(locks.slice(0, 3).join('\n'), 77)).toBeNull();
});
