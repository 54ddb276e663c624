/** Installs, upgrades, rolls back and takes off real services under a real systemd. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCommand } from '#shared/run-command.ts';
import { eventually } from '../fakes/eventually.ts';
import { type SystemdHost, startSystemdHost } from '../fakes/systemd-host.ts';

const INSTALL = 'sh /src/systemd/install.sh --probation 0';
const UNINSTALL = 'sh /opt/podwright/current/systemd/uninstall.sh';
const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';
const VALIDATOR_ENV = `VALIDATOR_CENTRAL_URL=http://127.0.0.1:8000/api
VALIDATOR_CENTRAL_HOTKEY=${HOTKEY}`;
const EXECUTOR = '8c4fd1f0-7b0e-4c57-9f3a-1d3f0e8b7a11';
const AGENT_ENV = `AGENT_EXECUTOR_ID=${EXECUTOR}
AGENT_GPU=none`;
const TREES = 'agent shared validator systemd package.json package-lock.json README.md LICENSE';

let host: SystemdHost;
beforeAll(async () => {
  host = await startSystemdHost();
});
afterAll(() => host.remove());

const line = async (script: string) => (await host.mustRun(script)).trim();
const current = () => line('readlink /opt/podwright/current');
const mainPid = (unit: string) => line(`systemctl show --property=MainPID --value ${unit}`);
/** Another version of this checkout at `path`, changed by `change`. */
const anotherTree = (path: string, change: string) =>
  host.mustRun(
    `mkdir ${path} && cd /src && cp -r ${TREES} ${path} && ln -s /src/node_modules ${path} && cd ${path} && ${change}`,
  );

it('says what it would do, what is missing, and changes nothing then', async () => {
  const state = () => line('find /etc /opt /var/lib -newer /etc/machine-id | sort; ls -A /opt');
  const before = await state();
  const dry = await host.mustRun(`${INSTALL} --component validator --dry-run`);
  expect(dry).toMatch(/would put release .*would make .*seed.*would switch.*would enable/s);
  await host.mustRun('systemd-run --quiet --unit=taken systemd-socket-activate -l 8090 true');
  await eventually(
    'a taken port',
    async () => (await host.run('grep -q :1F9A /proc/net/tcp6')).exitCode === 0,
  );
  const refused = await host.run(`PATH=/usr/bin:/bin ${INSTALL} --component validator`);
  expect(refused).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/not ready:\n.*Port 8090.*taken/),
  });
  await host.mustRun('systemctl stop taken');
  expect(await state()).toBe(before);
});

it('installs, waits for its variables, then serves under systemd, and does nothing when repeated', async () => {
  const first = await host.mustRun(`${INSTALL} --component validator`);
  expect(first).toMatch(/installed and not started: complete/);
  expect(await line('stat -c %a /etc/podwright/validator.env /etc/podwright/credentials')).toBe(
    '600\n700',
  );
  await host.mustRun(`echo '${VALIDATOR_ENV}' >/etc/podwright/validator.env`);
  expect(await host.mustRun(INSTALL)).toMatch(/serves: validator/);
  const shown = await line(
    'systemctl show --property=StatusText,NotifyAccess,Slice podwright-validator',
  );
  expect(shown.split('\n').sort()).toEqual([
    'NotifyAccess=all',
    'Slice=podwright.slice',
    'StatusText=serving',
  ]);
  const pid = await mainPid('podwright-validator');
  expect(await line(`stat -c %u /proc/${pid}`)).not.toBe('0');
  expect(await host.mustRun(INSTALL)).toMatch(/Nothing to do/);
  expect(await mainPid('podwright-validator')).toBe(pid);
});

it('has a validator that stands still restarted by the watchdog', async () => {
  const drop = '/run/systemd/system/podwright-validator.service.d';
  await host.mustRun(
    `mkdir -p ${drop} && printf '[Service]\\nWatchdogSec=4\\nRestartSec=0\\n' >${drop}/watchdog.conf &&
     systemctl daemon-reload && systemctl restart podwright-validator`,
  );
  const pid = await mainPid('podwright-validator');
  await host.mustRun(`kill -STOP ${pid}`);
  await eventually('a restart', async () => {
    const active = await host.run('systemctl is-active podwright-validator');
    return active.exitCode === 0 && (await mainPid('podwright-validator')) !== pid;
  });
  expect(await host.mustRun('journalctl --unit podwright-validator')).toMatch(/Watchdog timeout/);
  await host.mustRun(`rm -r ${drop} && systemctl daemon-reload`);
});

it('upgrades, takes a release back that does not serve, and goes back when told', async () => {
  const first = await current();
  await anotherTree('/root/second', "sed -i 's/0.1.0/0.2.0/' package.json");
  await host.mustRun('sh /root/second/systemd/install.sh --probation 0');
  const second = await current();
  expect(second).toMatch(/^releases\/0\.2\.0-/);
  expect(await line('readlink /opt/podwright/previous')).toBe(first);
  await anotherTree(
    '/root/broken',
    "sed -i 's/0.1.0/0.3.0/' package.json && sed -i '1i if (process.argv.length === 2) process.exit(1);' validator/main.ts",
  );
  const refused = await host.run('sh /root/broken/systemd/install.sh --probation 1');
  expect(refused).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/0\.3\.0-.* was taken back/),
  });
  expect(await current()).toBe(second);
  expect(await line('systemctl is-active podwright-validator')).toBe('active');
  expect(
    await host.mustRun('sh /opt/podwright/current/systemd/install.sh --rollback --probation 0'),
  ).toMatch(/serves/);
  expect(await current()).toBe(first);
});

it('is repeated after a kill at any step, and what runs is a whole release all the time', async () => {
  const before = await current();
  const pid = await mainPid('podwright-validator');
  const killAt = (sign: string) =>
    host.mustRun(
      `setsid sh /root/second/systemd/install.sh --probation 60 >/dev/null 2>&1 & shell=$!
       for try in $(seq 600); do if ${sign}; then kill -KILL -$shell; exit; fi; sleep 0.05; done; exit 1`,
    );
  await host.mustRun('rm -r /opt/podwright/releases/0.2.0-*');
  await killAt('[ -d /opt/podwright/releases/.new/agent ]');
  expect(await current()).toBe(before);
  expect(await mainPid('podwright-validator')).toBe(pid);
  await killAt('[ -e /opt/podwright/trial ]');
  expect(await host.mustRun('sh /root/second/systemd/install.sh --probation 0')).toMatch(/serves/);
  expect(await current()).toMatch(/0\.2\.0-/);
  expect(await line('readlink /opt/podwright/previous')).toBe(before);
  expect((await host.run('ls /opt/podwright/trial /opt/podwright/releases/.new')).stdout).toBe('');
});

it('runs agent and gateway, whose sandbox lets them do their work and no more', async () => {
  await host.mustRun(`echo '${AGENT_ENV}' >/etc/podwright/agent.env`);
  expect(await host.mustRun(`${INSTALL} --component agent`)).toMatch(/serves: agent validator/);
  expect(
    await line('systemctl is-active podwright-agent podwright-ssh-gateway podwright-kernel-log'),
  ).toBe('active\nactive\nactive');
  const score = 'systemd-analyze security --offline=true --threshold=40';
  const units = await host.mustRun(
    `cd /etc/systemd/system && cp /src/systemd/podwright-central.service . && for unit in podwright-*.service; do
       ${score} $unit >/dev/null && systemd-analyze verify $unit 2>&1 | grep podwright; echo $unit; done; rm podwright-central.service`,
  );
  expect(units.trim().split('\n')).toEqual(
    ['agent', 'central', 'kernel-log', 'ssh-gateway', 'validator'].map(
      (name) => `podwright-${name}.service`,
    ),
  );
});

it('keeps data or removes it, and refuses while there are pods', async () => {
  const labels = ['--label', 'io.podwright.pod=x', '--label', `io.podwright.executor=${EXECUTOR}`];
  const pod = `podwright-test-pod-${EXECUTOR}`;
  const docker = (...args: string[]) =>
    runCommand('docker', args, { timeoutMs: 20_000, maxOutputBytes: 10_000 });
  await docker('create', '--name', pod, ...labels, 'podwright.local/base:1', 'true');
  try {
    const refused = await host.run(`${UNINSTALL} --keep-data`);
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/1 pods here/) });
    await host.mustRun(`${UNINSTALL} --keep-data --component agent --pods leave`);
    expect((await docker('inspect', pod)).exitCode).toBe(0);
  } finally {
    await docker('rm', '--force', pod);
  }
  expect(await line('ls /etc/systemd/system | grep podwright')).toBe(
    'podwright-validator.service\npodwright.slice',
  );
  await host.mustRun(`${UNINSTALL} --keep-data`);
  expect(await line('ls /etc/podwright; ls /var/lib | grep podwright; ls /opt')).toBe(
    'agent.env\ncredentials\nvalidator.env\npodwright\npodwright-validator',
  );
  await host.mustRun('sh /src/systemd/uninstall.sh --purge');
  expect(
    await line('ls /etc /opt /var/lib /var/cache /etc/systemd/system | grep podwright || true'),
  ).toBe('');
});
