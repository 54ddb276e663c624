import { expect, it } from 'vitest';
import { explain, isStackLine, redactLine } from './restic-output.ts';

it.each([
  ['Fatal: wrong password or no key found', 'RepositoryAuth'],
  [
    'Fatal: unable to open config file: stat /r/config: no such file or directory\nIs there a repository at the following location?',
    'RepositoryMissing',
  ],
  [
    'Fatal: unable to open config file: client.Head: Head "http://h/x/config": dial tcp 127.0.0.1:1: connect: connection refused\nIs there a repository at the following location?',
    'RepositoryUnreachable',
  ],
  [
    'Fatal: unable to open config file: client.Head: Head "http://h/x/config": EOF\nIs there a repository at the following location?',
    'RepositoryUnreachable',
  ],
  ['Fatal: load <data/1>: unexpected EOF', 'RepositoryCorrupt'],
  [
    'Fatal: unable to open config file: unexpected HTTP response (401): 401 Unauthorized\nIs there a repository',
    'RepositoryAuth',
  ],
  [
    'Fatal: unable to open config file: unexpected HTTP response (404): 404 Not Found\nIs there a repository',
    'RepositoryMissing',
  ],
  ['unable to create lock in backend: repository is already locked exclusively by PID 1', 'locked'],
  [
    'Save(<data/1>) returned error: server response unexpected: 507 Insufficient Storage (507)',
    'RepositoryNoSpace',
  ],
  ['Fatal: ciphertext verification failed', 'RepositoryCorrupt'],
  ['Fatal: load <index/1>: invalid data returned', 'RepositoryCorrupt'],
  ['invalid id "f": no matching ID found for prefix "f"', 'SnapshotMissing'],
  ['something else', 'EngineFailed'],
])('recognises the problem in: %s', (text, problem) => {
  expect(explain(text).problem).toBe(problem);
});

it('distinguishes a full disk of this host from a full repository', () => {
  const text = 'ignoring error for /a: write /new/a: no space left on device';
  expect(explain(text, 'restore').problem).toBe('NoSpace');
  expect(explain(text).problem).toBe('RepositoryNoSpace');
  const quota = 'ignoring error for /a: write new/a: disk quota exceeded';
  expect(explain(quota, 'restore').problem).toBe('NoSpace');
});

it('redacts secrets, credentials in addresses and host paths, and truncates the line', () => {
  const known = { secrets: ['hunter-22'], paths: [['/var/lib/v/_data', '/data']] as const };
  const line = 'open /var/lib/v/_data/x: rest:http://me:pw@h/ with hunter-22\u001b[0m';
  expect(redactLine(line, known)).toBe('open /data/x: rest:http://***@h/ with *** [0m');
  const long = redactLine(`open ${'x'.repeat(5_000)}: file name too long`, known);
  expect(long).toHaveLength(301);
  expect(long).toMatch(/^open x+…x+: file name too long$/);
});

it('recognises lines of a stack trace, which are not shown', () => {
  const trace = [
    'github.com/restic/restic/internal/backend/local.(*Local).Save.func1',
    '\t/build/restic/internal/backend/local/local.go:120',
    'main.main',
    'runtime.goexit',
    'goroutine 1 [running]:',
  ];
  expect(trace.filter((line) => !isStackLine(line))).toEqual([]);
  expect(isStackLine('Fatal: unable to create lock in backend: read-only file system')).toBe(false);
  expect(isStackLine('ignoring error for /src/main.go: ciphertext verification failed')).toBe(
    false,
  );
});
