/** Checks of the container engine, from its own report. */
import type { DiskQuota } from '#shared/api/agent/inventory.ts';
import { fail, type Outcome, ok, type Problem, unread, warn } from '#shared/check/check.ts';
import type { DoctorCheck } from '#shared/check/doctor.ts';
import type { Observed } from '#shared/check/observe.ts';
import type { EngineReport } from '../containers/engine/engine-report.ts';

/** The oldest Docker that the agent is tested with, and its API version. */
const OLDEST_ENGINE = [20, 10] as const;
const OLDEST_API = [1, 41] as const;

export type EngineFacts = {
  socketPath: string;
  report: Observed<EngineReport>;
  /** systemd is the host's service manager. */
  systemd: boolean;
  /** Enforcement of pods' disk limits, determined with a probe container. */
  quota: Observed<DiskQuota>;
  /** False if an NVIDIA device node has no link in /dev/char; null without such nodes. */
  gpuLinks: boolean | null;
};

export const ENGINE_CHECKS: readonly DoctorCheck<EngineFacts>[] = [
  {
    id: 'docker',
    detects: 'a Docker engine that is unreachable, too old or rootless',
    required: `Docker ${OLDEST_ENGINE.join('.')} or newer, run by root`,
    judge({ report, socketPath }) {
      if ('problem' in report) return unreachable(socketPath, report);
      const { version, apiVersion, rootless } = report.value;
      const measured = `Docker ${version}, API ${apiVersion}, at ${socketPath}`;
      if (!isAtLeast(version, OLDEST_ENGINE) || !isAtLeast(apiVersion, OLDEST_API)) {
        return fail(measured, `install Docker ${OLDEST_ENGINE.join('.')} or newer`);
      }
      if (!rootless) return ok(measured);
      const limits = 'rootless: the agent cannot set firewall rules or read log files';
      return warn(`${measured}, ${limits}`, 'run the engine as root on hosts that are rented out');
    },
  },
  {
    id: 'docker-storage',
    detects: 'storage that copies images or does not enforce disk limits',
    required: 'overlay2 on xfs with project quotas',
    judge: ({ report, quota }) => judgeReport(report, (engine) => storage(engine, quota)),
  },
  {
    id: 'docker-limits',
    detects: 'pods whose resources cannot be limited',
    required: 'limits of memory, pids and CPU',
    judge: ({ report }) => judgeReport(report, limits),
  },
  {
    id: 'docker-seccomp',
    detects: 'pods with unfiltered system calls',
    required: 'a seccomp profile',
    judge: ({ report }) =>
      judgeReport(report, ({ seccomp }) =>
        seccomp
          ? ok('system calls of pods are filtered')
          : warn(
              'system calls of pods are not filtered',
              'remove "seccomp-profile": "unconfined" from /etc/docker/daemon.json',
            ),
      ),
  },
  {
    id: 'docker-cgroup',
    detects: 'pods that lose their GPUs at systemctl daemon-reload',
    required: 'links of GPU device nodes in /dev/char, or the cgroupfs driver',
    judge: (facts) => judgeReport(facts.report, (engine) => cgroup(engine, facts)),
  },
  {
    id: 'docker-live-restore',
    detects: 'pods that end when Docker restarts',
    required: '"live-restore": true',
    judge: ({ report }) =>
      judgeReport(report, ({ liveRestore }) =>
        liveRestore
          ? ok('pods survive a restart of Docker')
          : warn(
              'a restart or an upgrade of Docker ends every pod',
              'set "live-restore": true in /etc/docker/daemon.json, then: systemctl reload docker',
            ),
      ),
  },
];

function judgeReport(
  report: EngineFacts['report'],
  judge: (engine: EngineReport) => Outcome,
): Outcome {
  return 'value' in report ? judge(report.value) : unread(report, 'the engine does not answer');
}

function unreachable(socketPath: string, report: Problem): Outcome {
  const { problem } = report;
  const measured = `the engine at ${socketPath} does not answer: ${problem}`;
  // A restart of Docker may end the pods of a host that is only busy.
  if (report.timedOut === true) {
    return unread(
      report,
      measured,
      'the engine is slow: run the doctor again when the host is less busy',
    );
  }
  if (/EACCES|EPERM/.test(problem)) {
    return fail(measured, 'run the doctor and the agent as root, or: usermod -aG docker USER');
  }
  if (/ENOENT|ECONNREFUSED/.test(problem)) {
    const other = 'or set AGENT_DOCKER_SOCKET to its socket';
    return fail(measured, `sudo sh systemd/prerequisites.sh; systemctl start docker; ${other}`);
  }
  return fail(measured, 'read: journalctl -u docker -n 50; then: systemctl restart docker');
}

/** Storage drivers whose layers the agent can mount; `overlayfs` is containerd's. */
const OVERLAYS = ['overlay2', 'overlayfs'];

function storage(engine: EngineReport, quota: EngineFacts['quota']): Outcome {
  const { storageDriver, backingFilesystem } = engine;
  const driver =
    backingFilesystem === '' ? storageDriver : `${storageDriver} on ${backingFilesystem}`;
  const remedy = 'set "storage-driver": "overlay2" in /etc/docker/daemon.json';
  if (storageDriver === 'vfs') return fail('vfs: every pod is a full copy of its image', remedy);
  if (!OVERLAYS.includes(storageDriver)) {
    const measured = `${driver}: only volumes of pods can be backed up, no other folders`;
    return warn(measured, `before the first pod, ${remedy}`);
  }
  if ('problem' in quota) {
    return unread(quota, `${driver}; disk limits not tried: ${quota.problem}`);
  }
  if (quota.value === 'kernel') return ok(`${driver}; the kernel enforces pods’ disk limits`);
  return warn(
    `${driver}: the kernel does not enforce pods’ disk limits, so the agent measures them`,
    'before the first pod, put Docker’s folder on xfs mounted with pquota (mkfs.xfs; mount -o pquota)',
  );
}

function limits({ limits: { memory, pids, cpu } }: EngineReport): Outcome {
  const missing = [memory ? [] : 'memory', pids ? [] : 'pids', cpu ? [] : 'CPU'].flat();
  if (missing.length === 0) return ok('memory, pids and CPU of pods can be limited');
  return fail(
    `no limits of ${missing.join(', ')}: a pod can take the host down`,
    'boot with the cgroup controllers on: cgroup_enable=memory in GRUB_CMDLINE_LINUX; update-grub; reboot',
  );
}

/** Checks the cgroup driver: with systemd, a daemon-reload rebuilds device rules from the links in /dev/char. */
function cgroup(engine: EngineReport, { systemd, gpuLinks }: EngineFacts): Outcome {
  const { cgroupDriver, cgroupVersion } = engine;
  const measured = `driver ${cgroupDriver}, cgroup v${cgroupVersion}`;
  if (cgroupDriver !== 'systemd' || gpuLinks === null) {
    const mixed = systemd && cgroupVersion === '2' && cgroupDriver === 'cgroupfs';
    return ok(mixed ? `${measured}; GPUs survive systemctl daemon-reload` : measured);
  }
  if (gpuLinks) return ok(`${measured}; the GPUs have their links in /dev/char`);
  return warn(
    `${measured}: pods lose their GPUs at the next systemctl daemon-reload`,
    'nvidia-ctk system create-dev-char-symlinks --create-all, at each boot; ' +
      'or "exec-opts": ["native.cgroupdriver=cgroupfs"] in /etc/docker/daemon.json while no pod runs',
  );
}

function isAtLeast(text: string, [major, minor]: readonly [number, number]): boolean {
  const [hasMajor = 0, hasMinor = 0] = text.split('.').map((part) => Number.parseInt(part, 10));
  return hasMajor > major || (hasMajor === major && hasMinor >= minor);
}
