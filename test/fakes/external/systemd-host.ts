/**
 * A host with systemd: a container with this machine's programs and separate /etc, /opt and /var. Its changes to files,
 * services and network are removed with the container. Needs root, and systemd installed on this machine (it need not
 * run).
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemRandom } from '#shared/runtime/random.ts';
import { type CommandResult, runCommand } from '#shared/runtime/run-command.ts';
import { removeWithImage } from '../../run/leftovers.ts';

export type SystemdHost = {
  /** Runs a shell script as root. This checkout is at /src, read-only. */
  run(script: string): Promise<CommandResult>;
  /** Runs a shell script and resolves with its standard output; rejects with its output if it fails. */
  mustRun(script: string, timeoutMs?: number): Promise<string>;
  /** Copies a file of this machine to the host. */
  copy(from: string, to: string): Promise<void>;
  /**
   * Polls a shell condition inside the host, because starting a program from outside for each poll would keep a
   * processor busy.
   */
  until(condition: string): Promise<void>;
  /** Address at which this machine reaches programs that listen on the host. */
  address: string;
  /** Address at which the host reaches programs on this machine. */
  machine: string;
  remove(): Promise<void>;
};

const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url));
const BOUNDS = { timeoutMs: 240_000, maxOutputBytes: 4 * 1024 * 1024 };
/** Timeout of `until` in seconds, shorter than the timeout in `BOUNDS`. */
const UNTIL_S = 200;
const FOLDERS = ['usr', 'etc', 'var/lib', 'var/log', 'tmp', 'proc', 'sys', 'dev', 'root', 'opt'];
const USERS = ['root:x:0:0:root:/root:/bin/sh', 'messagebus:x:100:107::/:/bin/false'];
const GROUPS = ['root:x:0:', 'messagebus:x:107:', 'tty:x:5:', 'docker:x:998:', 'utmp:x:43:'];
/** Services that do not start on a host that uses this machine's Docker engine. */
const ENGINE_UNITS = ['docker.service', 'docker.socket', 'containerd.service'];
/** Requirements of systemd in a container: mounts, and cgroups below the container's. */
const CAPABILITIES = 'SYS_ADMIN NET_ADMIN SYS_PTRACE SYS_NICE SYSLOG DAC_READ_SEARCH'.split(' ');
const SHARED = ['/usr', '/etc/alternatives', '/etc/ssl'];
const OPTIONS = [
  ...['--label', 'io.podwright.test=systemd', '--env', 'container=docker', '--cgroupns=private'],
  ...CAPABILITIES.flatMap((capability) => ['--cap-add', capability]),
  ...['--security-opt', 'seccomp=unconfined', '--security-opt', 'apparmor=unconfined'],
  ...['--tmpfs', '/run', '--tmpfs', '/tmp:exec', '--tmpfs', '/opt:exec', '--device', '/dev/kmsg'],
  ...SHARED.flatMap((path) => ['--volume', `${path}:${path}:ro`]),
  ...['--volume', `${CHECKOUT}:/src:ro`],
];
/**
 * Volumes by kind of engine. A separate engine needs a file system that is not an overlay, so it gets a volume that is
 * removed with the container.
 */
const ENGINE_OPTIONS = {
  machine: ['--volume', '/var/run/docker.sock:/run/docker.sock'],
  separate: ['--volume', '/var/lib/docker'],
};
const ADDRESSES = '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{.Gateway}}{{end}}';
/**
 * Script of the first process. Docker has mounted the cgroups of version 1 read-only; only a bind remount changes that.
 */
const INIT = `mount --make-rshared / &&
for at in $(awk '$2 ~ "^/sys/fs/cgroup" { print $2 }' /proc/mounts); do mount -o remount,rw "$at"; done
if [ "$SEPARATE_ENGINE" = yes ]; then
  for at in $(awk '$3 == "cgroup" { print $2 }' /proc/mounts); do mount -o remount,bind,rw "$at"; done
fi
exec /lib/systemd/systemd --unit=multi-user.target`;

/**
 * Starts a host. With `machine`, its programs use this machine's Docker engine; with `separate`, the host has an engine
 * whose service is not started yet, so that the engine's files, networks and ports are those of the host.
 */
export async function startSystemdHost(
  engine: keyof typeof ENGINE_OPTIONS = 'machine',
): Promise<SystemdHost> {
  const name = `podwright-test-systemd-${systemRandom.uuid()}`;
  const run = (script: string, timeoutMs = BOUNDS.timeoutMs) =>
    runCommand('docker', ['exec', name, '/bin/sh', '-c', script], { ...BOUNDS, timeoutMs });
  const mustRun = async (script: string, timeoutMs?: number) => {
    const { exitCode, stdout, stderr } = await run(script, timeoutMs);
    if (exitCode !== 0) throw new Error(`${script}\nended with ${exitCode}:\n${stdout}${stderr}`);
    return stdout;
  };
  const until = async (condition: string) => {
    const giveUp = `[ "$(date +%s)" -lt $end ] || { echo 'not within ${UNTIL_S} s'; exit 1; }`;
    await mustRun(`end=$(($(date +%s) + ${UNTIL_S}))
      until ${condition}; do ${giveUp}; sleep 0.1; done`);
  };
  /** For a process that exits without `remove`. */
  const abandon = () => removeWithImage(name);
  const remove = async () => {
    process.removeListener('exit', abandon);
    await runCommand('docker', ['rm', '--force', '--volumes', name], BOUNDS);
    await docker('rmi', name);
  };
  const isSeparate = engine === 'separate';
  process.once('exit', abandon);
  await makeImage(name, isSeparate ? [] : ENGINE_UNITS);
  const place = { address: '', machine: '' };
  try {
    const options = [...OPTIONS, ...ENGINE_OPTIONS[engine]];
    const variable = ['--env', `SEPARATE_ENGINE=${isSeparate ? 'yes' : 'no'}`];
    const command = [name, '/bin/sh', '-c', INIT];
    await docker('run', '--detach', '--name', name, ...options, ...variable, ...command);
    await until('systemctl is-active --quiet multi-user.target 2>/dev/null');
    const { stdout } = await docker('inspect', '--format', ADDRESSES, name);
    [place.address = '', place.machine = ''] = stdout.trim().split(' ');
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    ...place,
    run,
    mustRun,
    async copy(from, to) {
      await docker('exec', name, 'mkdir', '-p', dirname(to));
      await docker('cp', from, `${name}:${to}`);
    },
    until,
    remove,
  };
}

/** Builds an image whose root file system consists of links and empty folders. */
async function makeImage(name: string, maskedUnits: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-systemd-'));
  try {
    const root = join(folder, 'root');
    for (const path of FOLDERS) mkdirSync(join(root, path), { recursive: true });
    for (const path of ['bin', 'sbin', 'lib', 'lib64'])
      symlinkSync(`usr/${path}`, join(root, path));
    symlinkSync('../run', join(root, 'var/run'));
    writeFileSync(join(root, 'etc/passwd'), `${USERS.join('\n')}\n`);
    writeFileSync(join(root, 'etc/group'), `${GROUPS.join('\n')}\n`);
    writeFileSync(join(root, 'etc/machine-id'), '');
    const masked = join(root, 'etc/systemd/system');
    mkdirSync(masked, { recursive: true });
    for (const unit of maskedUnits) symlinkSync('/dev/null', join(masked, unit));
    const archive = join(folder, 'root.tar');
    await runCommand('tar', ['-C', root, '-cf', archive, '.'], BOUNDS);
    await docker('import', archive, name);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function docker(...args: string[]): Promise<CommandResult> {
  const result = await runCommand('docker', args, BOUNDS);
  if (result.exitCode === 0) return result;
  throw new Error(`docker ${args.join(' ')}: ${result.stderr}`);
}
