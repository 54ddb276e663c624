import { expect, it } from 'vitest';
import { findingsOf } from '#shared/check/doctor.ts';
import type { EngineReport } from '../containers/engine/engine-report.ts';
import { ENGINE_CHECKS, type EngineFacts } from './engine.check.ts';

const GOOD: EngineReport = {
  version: '27.3.1',
  apiVersion: '1.47',
  storageDriver: 'overlay2',
  backingFilesystem: 'xfs',
  cgroupDriver: 'systemd',
  cgroupVersion: '2',
  runtimes: ['runc', 'nvidia'],
  defaultRuntime: 'runc',
  cdiSpecDirs: [],
  rootDir: '/var/lib/docker',
  seccomp: true,
  rootless: false,
  liveRestore: true,
  limits: { memory: true, pids: true, cpu: true },
};

const facts = (
  change: Partial<EngineReport> = {},
  quota: EngineFacts['quota'] = { value: 'kernel' },
) => ({
  socketPath: '/run/docker.sock',
  report: { value: { ...GOOD, ...change } },
  systemd: true,
  quota,
});

const engineFindings = (found: Omit<EngineFacts, 'gpuLinks'>, gpuLinks: boolean | null) =>
  findingsOf(ENGINE_CHECKS, { ...found, gpuLinks });

it('reports an engine that did not answer in time as unknown', () => {
  const report = { problem: 'no answer within 5000 ms', timedOut: true as const };
  const findings = engineFindings({ ...facts(), report }, true);
  expect(findings.map(({ status, timed_out }) => [status, timed_out])).toEqual(
    ENGINE_CHECKS.map(() => ['unknown', true]),
  );
  expect(findings[0]?.remedy).toContain('run the doctor again');
  const refused = engineFindings({ ...facts(), report: { problem: 'ECONNREFUSED' } }, true);
  expect(refused[0]).toMatchObject({ status: 'fail', timed_out: false });
});

it('reports no fault of a suitable engine', () => {
  const findings = engineFindings(facts(), true);
  expect(findings.filter(({ status }) => status !== 'ok')).toEqual([]);
});

it.each<[string, string, Partial<EngineReport>, string]>([
  ['docker', 'fail', { version: '19.03.15', apiVersion: '1.40' }, '20.10'],
  ['docker', 'warn', { rootless: true }, 'root'],
  ['docker-storage', 'fail', { storageDriver: 'vfs' }, 'overlay2'],
  ['docker-storage', 'warn', { storageDriver: 'btrfs' }, 'overlay2'],
  ['docker-limits', 'fail', { limits: { memory: false, pids: true, cpu: true } }, 'cgroup'],
  ['docker-seccomp', 'warn', { seccomp: false }, 'seccomp'],
  ['docker-live-restore', 'warn', { liveRestore: false }, 'live-restore'],
])('reports the check %s as %s', (id, status, change, remedy) => {
  const found = engineFindings(facts(change), true).find((each) => each.id === id);
  expect(found).toMatchObject({ status, remedy: expect.stringContaining(remedy) });
});

it.each([
  [{ value: 'kernel' } as const, 'ok'],
  [{ value: 'poll' } as const, 'warn'],
  [{ problem: 'not asked' }, 'unknown'],
])('judges disk limits by the result of the probe container: %j', (quota, status) => {
  const found = engineFindings(facts({}, quota), true).find(({ id }) => id === 'docker-storage');
  expect(found?.status).toBe(status);
});

it.each([
  ['systemd', false, 'warn'],
  ['systemd', true, 'ok'],
  ['systemd', null, 'ok'],
  ['cgroupfs', false, 'ok'],
])(
  'warns if a daemon-reload would remove GPUs from pods: driver %s, links in /dev/char: %s',
  (cgroupDriver, links, status) => {
    const found = engineFindings(facts({ cgroupDriver }), links).find(
      ({ id }) => id === 'docker-cgroup',
    );
    expect(found?.status).toBe(status);
    if (status === 'warn') expect(found?.remedy).toContain('create-dev-char-symlinks');
  },
);

it.each([
  ['connect EACCES /run/docker.sock', 'usermod'],
  ['connect ENOENT /run/docker.sock', 'prerequisites.sh'],
  ['connect ECONNREFUSED /run/docker.sock', 'systemctl start'],
  ['no answer within 5000 ms', 'restart'],
])('names the remedy if the engine is unreachable: %s', (problem, remedy) => {
  const [docker, ...rest] = engineFindings({ ...facts(), report: { problem } }, null);
  expect(docker).toMatchObject({ status: 'fail', remedy: expect.stringContaining(remedy) });
  expect(rest.map(({ status }) => status)).toEqual(rest.map(() => 'unknown'));
});
