/** Judges what the container engine says of itself (agent reference 1 fact 7, 5, 11). Pure. */
import type { DiskQuota } from '#shared/api/agent/inventory.ts';
import { type Finding, fail, ok, unknown, warn } from '#shared/check/finding.ts';
import type { Told } from '#shared/check/told.ts';
import type { EngineReport } from '../containers/engine/engine-report.ts';

/** The oldest engine that this agent is tested on, and its API. */
const OLDEST_ENGINE = [20, 10] as const;
const OLDEST_API = [1, 41] as const;

export type EngineFacts = {
  socketPath: string;
  report: Told<EngineReport>;
  /** `/run/systemd/system` is there: systemd is the service manager. */
  systemd: boolean;
  /** What holds pods to their disk limits, found by trying. */
  quota: Told<DiskQuota>;
};

const IDS = [
  'docker-storage',
  'docker-limits',
  'docker-seccomp',
  'docker-cgroup',
  'docker-live-restore',
];

/** `gpuLinks` is false where NVIDIA's device nodes lack their links in /dev/char; null without such nodes. */
export function engineFindings(facts: EngineFacts, gpuLinks: boolean | null): Finding[] {
  const { report, socketPath } = facts;
  if ('problem' in report) {
    return [unreachable(socketPath, report.problem), ...IDS.map((id) => unknown(id, UNANSWERED))];
  }
  const engine = report.value;
  return [
    version(engine, socketPath),
    storage(engine, facts.quota),
    limits(engine),
    seccomp(engine),
    cgroup(engine, facts.systemd, gpuLinks),
    liveRestore(engine),
  ];
}

const UNANSWERED = 'not known: the engine does not answer';

function unreachable(socketPath: string, problem: string): Finding {
  const finding = `the engine at ${socketPath} does not answer: ${problem}`;
  if (/EACCES|EPERM/.test(problem)) {
    return fail(
      'docker',
      finding,
      'run the doctor and the agent as root, or: usermod -aG docker USER',
    );
  }
  if (/ENOENT|ECONNREFUSED/.test(problem)) {
    const other = 'or name its socket in AGENT_DOCKER_SOCKET';
    return fail(
      'docker',
      finding,
      `sudo sh systemd/prerequisites.sh; systemctl start docker; ${other}`,
    );
  }
  return fail(
    'docker',
    finding,
    'look at: journalctl -u docker -n 50; then: systemctl restart docker',
  );
}

function version(engine: EngineReport, socketPath: string): Finding {
  const finding = `Docker ${engine.version}, API ${engine.apiVersion}, at ${socketPath}`;
  const isOld =
    !isAtLeast(engine.version, OLDEST_ENGINE) || !isAtLeast(engine.apiVersion, OLDEST_API);
  if (isOld) {
    return fail('docker', finding, `install Docker ${OLDEST_ENGINE.join('.')} or newer`);
  }
  if (!engine.rootless) return ok('docker', finding);
  const what = `${finding}, rootless: no firewall rules and no log files for the agent`;
  return warn('docker', what, 'run the engine as root on hosts that are rented out');
}

function storage(engine: EngineReport, quota: Told<DiskQuota>): Finding {
  const id = 'docker-storage';
  const { storageDriver, backingFilesystem } = engine;
  const what =
    backingFilesystem === '' ? storageDriver : `${storageDriver} on ${backingFilesystem}`;
  if (storageDriver === 'vfs') {
    const remedy = 'set "storage-driver": "overlay2" in /etc/docker/daemon.json';
    return fail(id, 'vfs: every pod is a full copy of its image', remedy);
  }
  if ('problem' in quota) return unknown(id, `${what}; disk limits not tried: ${quota.problem}`);
  if (quota.value === 'kernel')
    return ok(id, `${what}; the kernel holds pods to their disk limits`);
  return warn(
    id,
    `${what}: the kernel does not hold pods to their disk limits, the agent measures them`,
    'before pods lie there, put Docker’s folder on xfs mounted with pquota (mkfs.xfs; mount -o pquota)',
  );
}

function limits({ limits: { memory, pids, cpu } }: EngineReport): Finding {
  const missing = [memory ? [] : 'memory', pids ? [] : 'pids', cpu ? [] : 'CPU'].flat();
  if (missing.length === 0)
    return ok('docker-limits', 'memory, pids and CPU of pods can be limited');
  return fail(
    'docker-limits',
    `no limits of ${missing.join(', ')}: a pod can take the host down`,
    'boot with the cgroup controllers on: cgroup_enable=memory in GRUB_CMDLINE_LINUX; update-grub; reboot',
  );
}

function seccomp(engine: EngineReport): Finding {
  if (engine.seccomp) return ok('docker-seccomp', 'system calls of pods are filtered');
  const remedy = 'take "seccomp-profile": "unconfined" out of /etc/docker/daemon.json';
  return warn('docker-seccomp', 'system calls of pods are not filtered', remedy);
}

/** With systemd's driver a daemon-reload rewrites device rules from what it can resolve under /dev/char. */
function cgroup(engine: EngineReport, systemd: boolean, gpuLinks: boolean | null): Finding {
  const what = `driver ${engine.cgroupDriver}, cgroup v${engine.cgroupVersion}`;
  if (engine.cgroupDriver !== 'systemd' || gpuLinks === null) {
    const mixed = systemd && engine.cgroupVersion === '2' && engine.cgroupDriver === 'cgroupfs';
    return ok('docker-cgroup', mixed ? `${what}; GPUs survive systemctl daemon-reload` : what);
  }
  if (gpuLinks) return ok('docker-cgroup', `${what}; the GPUs have their links in /dev/char`);
  return warn(
    'docker-cgroup',
    `${what}: pods lose their GPUs at the next systemctl daemon-reload`,
    'nvidia-ctk system create-dev-char-symlinks --create-all, at each boot; ' +
      'or "exec-opts": ["native.cgroupdriver=cgroupfs"] in /etc/docker/daemon.json while no pod runs',
  );
}

function liveRestore(engine: EngineReport): Finding {
  if (engine.liveRestore) return ok('docker-live-restore', 'pods outlive a restart of Docker');
  return warn(
    'docker-live-restore',
    'a restart or an upgrade of Docker ends every pod',
    'set "live-restore": true in /etc/docker/daemon.json, then: systemctl reload docker',
  );
}

function isAtLeast(text: string, [major, minor]: readonly [number, number]): boolean {
  const [hasMajor = 0, hasMinor = 0] = text.split('.').map((part) => Number.parseInt(part, 10));
  return hasMajor > major || (hasMajor === major && hasMinor >= minor);
}
