/**
 * The real programs under a real systemd: install, sandbox, restart, stop. Upgrades are tested in release-*.test.ts.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { type SystemdHost, startSystemdHost } from '../fakes/external/systemd-host.ts';

const INSTALL = 'sh /src/systemd/install.sh --probation 0';
const UNINSTALL = 'sh /opt/podwright/current/systemd/uninstall.sh';
const ALL = '--component validator --component agent --component central';
const VALIDATOR_ENV = `VALIDATOR_CENTRAL_URL=http://127.0.0.1:8000/api
VALIDATOR_CENTRAL_HOTKEY=5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY`;
const CENTRAL_ENV = `CENTRAL_GATEWAY_URL=http://127.0.0.1:8090
CENTRAL_GATEWAY_HOTKEY=5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY`;
const EXECUTOR = systemRandom.uuid();
const AGENT_ENV = `AGENT_EXECUTOR_ID=${EXECUTOR}
AGENT_GPU=none
AGENT_HOST=127.0.0.1`;
/** The real programs start several times, on a host that may be busy. */
const LONG_MS = 300_000;
const DROP_INS = '/run/systemd/system';
const SERVING = 'podwright-agent podwright-ssh-gateway podwright-validator podwright-central';

/** Operations that the agent's sandbox must permit, and those that it must block. `$1`: a process of another user. */
const PROBE = `
cd /var/lib/podwright
try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "may $name"; else echo "may not $name"; fi; }
{
  try mount-namespace unshare --mount --propagation private -- sh -c 'mount --bind . . && mount -o remount,bind,ro,nosymfollow .'
  try firewall-rules sh -c 'iptables -w -N PODWRIGHT-PROBE && iptables -w -X PODWRIGHT-PROBE'
  try lower-priority setpriv --pdeathsig KILL nice -n 10 ionice -t -c 3 prlimit --data=1073741824 --core=0 true
  try restore sh -c 'echo >f && chown 1234:1234 f && chmod 4755 f && echo >>f && rm f'
  try signal kill -0 $1
  try read-environment cat /proc/$1/environ
  try write-etc sh -c 'echo >/etc/f'
  try write-releases sh -c 'echo >/opt/podwright/f'
  try read-kernel-log dd if=/dev/kmsg of=/dev/null count=1 iflag=nonblock
  try other-network unshare --net true
  try make-devices mknod f b 8 0
  try set-clock date --set=2020-01-01
} >probe.txt`;

let host: SystemdHost;
beforeAll(async () => {
  host = await startSystemdHost();
});
afterAll(() => host.remove());

const line = async (script: string) => (await host.mustRun(script)).trim();
const docker = (...args: string[]) =>
  runCommand('docker', args, { timeoutMs: 20_000, maxOutputBytes: 100_000 });
const mainPid = (unit: string) => line(`systemctl show --property=MainPID --value ${unit}`);

it('--dry-run prints the steps and what is missing, and changes nothing', async () => {
  const state = () => line('find /etc /opt /var/lib -newer /etc/machine-id | sort; ls -A /opt');
  const before = await state();
  const dry = await host.mustRun(`${INSTALL} --component validator --dry-run`);
  expect(dry).toMatch(/would put release .*would make .*seed.*would switch.*would enable/s);
  const onTerminal = `script -qec '${INSTALL} --component validator --dry-run' /dev/null`;
  expect(await host.mustRun(onTerminal)).toMatch(
    /\[1\/8\] check this host.*\[8\/8\] old releases/s,
  );
  await host.mustRun(
    'systemd-run --quiet --unit=taken systemd-socket-activate -l 8090 -l 9102 true',
  );
  await host.until('grep -q :1F9A /proc/net/tcp6 && grep -q :238E /proc/net/tcp6');
  const refused = await host.run(`${INSTALL} --component validator`);
  expect(refused).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(
      /not ready:\n.*Port 8090.*taken.*\n.*Port 9102 of the validator's metrics/,
    ),
  });
  await host.mustRun('systemctl stop taken');
  expect(await state()).toBe(before);
});

it(
  'install.sh waits for the variables, then starts the services; a repeated run changes nothing',
  async () => {
    const first = await host.mustRun(`${INSTALL} ${ALL}`);
    expect(first).toMatch(
      /agent is installed and not yet started.*validator is installed and not.*central is installed and not/s,
    );
    const modes = 'stat -c %a /etc/podwright/validator.env /etc/podwright/credentials';
    expect(await line(modes)).toBe('600\n700');
    await host.mustRun(
      `echo '${VALIDATOR_ENV}' >/etc/podwright/validator.env; echo '${CENTRAL_ENV}' >/etc/podwright/central.env; echo '${AGENT_ENV}' >/etc/podwright/agent.env`,
    );
    expect(await host.mustRun(INSTALL)).toMatch(/serves: agent validator central/);
    const shown = await line(`systemctl show --property=StatusText --value ${SERVING} | grep .`);
    expect(shown).toBe('serving\n'.repeat(4).trim());
    const pid = await mainPid('podwright-validator');
    expect(await line(`stat -c %u /proc/${pid}`)).not.toBe('0');
    expect(await line(`stat -c %u /proc/${await mainPid('podwright-central')}`)).not.toBe('0');
    expect(await host.mustRun(INSTALL)).toMatch(/Nothing to do/);
    expect(await mainPid('podwright-validator')).toBe(pid);
  },
  LONG_MS,
);

it('the units pass systemd-analyze, with an exposure of at most 4.0', async () => {
  const seen =
    await host.mustRun(`cd /tmp && cp /src/systemd/podwright* . && for unit in *.service; do
    systemd-analyze security --offline=true --threshold=40 ./$unit >/dev/null && echo $unit
    systemd-analyze verify ./$unit 2>&1 | grep podwright || true; done`);
  const names = ['agent-update', 'agent', 'central', 'kernel-log', 'ssh-gateway', 'validator'];
  expect(seen.trim().split('\n')).toEqual(names.map((name) => `podwright-${name}.service`));
});

it('the sandbox permits the agent’s operations, and no others', async () => {
  const pid = await mainPid('podwright-validator');
  await host.mustRun(`cat >/etc/probe.sh <<'TEXT'${PROBE}
TEXT
    sed -e '/^Exec/d; /^Notify/d; /^Watchdog/d; /^Restart/d; s/^Type=.*/Type=oneshot/' \\
      -e 's|^WorkingDir.*|&\\nExecStart=/bin/sh /etc/probe.sh ${pid}|' \\
      /src/systemd/podwright-agent.service >/run/systemd/system/probe.service
    systemctl daemon-reload && systemctl start probe`);
  const seen = await line('cat /var/lib/podwright/probe.txt');
  expect(seen.split('\n')).toEqual([
    ...[
      'may mount-namespace',
      'may firewall-rules',
      'may lower-priority',
      'may restore',
      'may signal',
      'may read-environment',
    ],
    ...['may not write-etc', 'may not write-releases', 'may not read-kernel-log'],
    ...['may not other-network', 'may not make-devices', 'may not set-clock'],
  ]);
});

it('the validator reads the registry login from its systemd credentials', async () => {
  const script = `import('/src/shared/updates/registry-login.ts').then(({ readRegistryLogin }) => console.log(
    readRegistryLogin(process.env.CREDENTIALS_DIRECTORY + '/registry', 'r.example/a', 'LOGIN').host));`;
  await host.mustRun(`umask 077 && cd /etc/podwright/credentials && cat >registry.mjs <<'TEXT'
${script}
TEXT
    mv registry.mjs /etc/registry.mjs && chmod 644 /etc/registry.mjs
    echo '{"username": "u", "password": "p"}' >validator.registry
    sed -e '/^Exec/d; /^Notify/d; /^Watchdog/d; /^Restart/d; /Directory/d; s/^Type=.*/Type=oneshot/' \
      -e 's|^LoadCred.*|LoadCredential=registry:/etc/podwright/credentials/validator.registry|' \
      -e 's|^UMask.*|ExecStart=/src/node_modules/.bin/node /etc/registry.mjs|' \
      /src/systemd/podwright-validator.service >/run/systemd/system/login.service
    systemctl daemon-reload && systemctl start login`);
  expect(await line('journalctl --output cat --unit login')).toContain('r.example');
});

it(
  'the watchdog restarts a frozen validator and a frozen central API',
  async () => {
    const units = ['podwright-validator', 'podwright-central'];
    await host.mustRun(`for unit in ${units.join(' ')}; do drop=${DROP_INS}/$unit.service.d
      mkdir -p $drop && printf '[Service]\\nRestartSec=0\\n' >$drop/restart.conf; done; systemctl daemon-reload`);
    const pids = await Promise.all(units.map(mainPid));
    // Applies only to the frozen process: the process that replaces it has the unit's usual timeout again.
    const bite = 'NOTIFY_SOCKET=/run/systemd/notify systemd-notify WATCHDOG_USEC=1000000';
    for (const pid of pids) await host.mustRun(`kill -STOP ${pid} && ${bite} --pid=${pid}`);
    for (const [index, unit] of units.entries()) {
      await host.until(
        `systemctl is-active --quiet ${unit} && [ "$(systemctl show -p MainPID --value ${unit})" != ${pids[index]} ]`,
      );
    }
    for (const unit of units) {
      expect(await host.mustRun(`journalctl --unit ${unit}`)).toMatch(/Watchdog timeout/);
    }
    await host.mustRun(`rm -r ${DROP_INS}/podwright-*.service.d && systemctl daemon-reload`);
  },
  LONG_MS,
);

it(
  'the central API responds as soon as systemd counts it as started, and stops gracefully',
  async () => {
    await host.mustRun('systemctl stop podwright-central');
    const ended = 'systemctl show --property=Result,ExecMainStatus,ActiveState podwright-central';
    expect((await line(ended)).split('\n').sort()).toEqual([
      ...['ActiveState=inactive', 'ExecMainStatus=0', 'Result=success'],
    ]);
    await host.mustRun(
      `systemctl start podwright-central && busybox wget -qO /dev/null http://127.0.0.1:8000/api/openapi.json`,
    );
  },
  LONG_MS,
);

it(
  'uninstall.sh stops the pods of its executor on request, and no other container',
  async () => {
    const names = ['pod', 'other'].map((kind) => `podwright-test-${kind}-${EXECUTOR}`);
    const [pod = '', other = ''] = names;
    const labels = Object.entries({ executor: EXECUTOR, kind: 'pod', managed: '1', pod: 'x' });
    const flags = labels.flatMap(([key, value]) => ['--label', `io.podwright.${key}=${value}`]);
    const script = `trap 'echo in order; exit' TERM; echo up; while :; do sleep 0.1; done`;
    const run = ['run', '--detach', '--network', 'none', '--name'];
    const command = ['podwright.local/base:1', 'sh', '-c', script];
    try {
      await docker(...run, pod, ...flags, ...command);
      await docker(...run, other, '--label', 'io.podwright.test=systemd', ...command);
      const state = () => docker('inspect', '--format', '{{json .State}}', other);
      const before = (await state()).stdout;
      const logs = docker('logs', '--follow', pod);
      const done = await host.mustRun(`${UNINSTALL} --keep-data --component agent --pods remove`);
      expect(done).toMatch(/removed 1 containers/);
      expect((await logs).stdout).toContain('in order');
      expect((await docker('inspect', pod)).exitCode).not.toBe(0);
      expect((await state()).stdout).toBe(before);
    } finally {
      await docker('rm', '--force', ...names);
    }
    expect(await line('systemctl is-active podwright-validator podwright-central')).toBe(
      'active\nactive',
    );
  },
  LONG_MS,
);
