/** Installs, upgrades, rolls back and takes off services under a real systemd. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { UpdateStatus } from '#shared/agent-api/update-status.ts';
import { runCommand } from '#shared/run-command.ts';
import { eventually } from '../fakes/eventually.ts';
import { type SystemdHost, startSystemdHost } from '../fakes/systemd-host.ts';
import { ENDS, startTreeUpdates, WORKS } from '../fakes/tree-updates.ts';

const INSTALL = 'sh /src/systemd/install.sh --probation 0';
const UNINSTALL = 'sh /opt/podwright/current/systemd/uninstall.sh';
const ALL = '--component validator --component agent --component central';
const VALIDATOR_ENV = `VALIDATOR_CENTRAL_URL=http://127.0.0.1:8000/api
VALIDATOR_CENTRAL_HOTKEY=5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY`;
const CENTRAL_ENV = `CENTRAL_GATEWAY_URL=http://127.0.0.1:8090
CENTRAL_GATEWAY_HOTKEY=5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY`;
const EXECUTOR = '8c4fd1f0-7b0e-4c57-9f3a-1d3f0e8b7a11';
const AGENT_ENV = `AGENT_EXECUTOR_ID=${EXECUTOR}
AGENT_GPU=none
AGENT_HOST=127.0.0.1`;
/** State and reason of the update, whichever version runs. */
const READ_ROW = `/src/node_modules/.bin/node -e '
  const { DatabaseSync } = require("node:sqlite");
  const store = new DatabaseSync("/var/lib/podwright/agent.sqlite", { timeout: 10000 });
  const { state, reason } = JSON.parse(store.prepare("SELECT row_json FROM agent_update").get().row_json);
  console.log(state, reason);'`;
/** The real programs are started several times, on a machine that may be busy. */
const LONG_MS = 300_000;
const SERVING = 'podwright-agent podwright-ssh-gateway podwright-validator podwright-central';

/** What runs in the agent's sandbox as the agent's work does, and what must not. `$1`: a process of another user. */
const PROBE = `
cd /var/lib/podwright
try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "may $name"; else echo "may not $name"; fi; }
{
  try jail unshare --mount --propagation private -- sh -c 'mount --bind . . && mount -o remount,bind,ro,nosymfollow .'
  try fence sh -c 'iptables -w -N PODWRIGHT-PROBE && iptables -w -X PODWRIGHT-PROBE'
  try be-meek setpriv --pdeathsig KILL nice -n 10 ionice -t -c 3 prlimit --data=1073741824 --core=0 true
  try restore sh -c 'echo >f && chown 1234:1234 f && chmod 4755 f && echo >>f && rm f'
  try signal kill -0 $1
  try look-into cat /proc/$1/environ
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
const current = () => line('readlink /opt/podwright/current');
const mainPid = (unit: string) => line(`systemctl show --property=MainPID --value ${unit}`);
/** A small tree that is installed like the real one; `program` is what its services run. */
const smallTree = (path: string, version: string, program: string) =>
  host.mustRun(`umask 077 && mkdir -p ${path}/agent/ssh-gateway ${path}/validator/central ${path}/shared && cd ${path} &&
    cp -r /src/systemd /src/package-lock.json /src/README.md /src/LICENSE . && ln -s /src/node_modules . &&
    sed 's/"version": .*/"version": "${version}",/' /src/package.json >package.json &&
    for main in agent agent/ssh-gateway shared validator validator/central; do echo "${program}" >$main/main.ts; done`);
const SERVES = `import { execFileSync } from 'node:child_process';
if (process.argv.length === 2) setInterval(() => execFileSync('systemd-notify', ['READY=1', 'WATCHDOG=1']), 500);`;
const BREAKS = 'if (process.argv.length === 2) process.exit(1);';

it('says what it would do, what is missing, and changes nothing then', async () => {
  const state = () => line('find /etc /opt /var/lib -newer /etc/machine-id | sort; ls -A /opt');
  const before = await state();
  const dry = await host.mustRun(`${INSTALL} --component validator --dry-run`);
  expect(dry).toMatch(/would put release .*would make .*seed.*would switch.*would enable/s);
  const onTerminal = `script -qec '${INSTALL} --component validator --dry-run' /dev/null`;
  expect(await host.mustRun(onTerminal)).toMatch(
    /\[1\/8\] look at this host.*\[8\/8\] old releases/s,
  );
  await host.mustRun('systemd-run --quiet --unit=taken systemd-socket-activate -l 8090 true');
  const isTaken = async () => (await host.run('grep -q :1F9A /proc/net/tcp6')).exitCode === 0;
  await eventually('a taken port', isTaken);
  const refused = await host.run(`${INSTALL} --component validator`);
  expect(refused).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/not ready:\n.*Port 8090.*taken/),
  });
  await host.mustRun('systemctl stop taken');
  expect(await state()).toBe(before);
});

it(
  'installs, waits for variables, then serves under systemd, and does nothing when repeated',
  async () => {
    const first = await host.mustRun(`${INSTALL} ${ALL}`);
    expect(first).toMatch(
      /agent is installed and not started.*validator is installed and not.*central is installed and not/s,
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

it('has units that systemd finds nothing wrong with, none more exposed than 4.0', async () => {
  const seen =
    await host.mustRun(`cd /tmp && cp /src/systemd/podwright* . && for unit in *.service; do
    systemd-analyze security --offline=true --threshold=40 ./$unit >/dev/null && echo $unit
    systemd-analyze verify ./$unit 2>&1 | grep podwright || true; done`);
  const names = ['agent-update', 'agent', 'central', 'kernel-log', 'ssh-gateway', 'validator'];
  expect(seen.trim().split('\n')).toEqual(names.map((name) => `podwright-${name}.service`));
});

it('lets the agent do its work in its sandbox, and no more', async () => {
  const pid = await mainPid('podwright-validator');
  await host.mustRun(`cat >/etc/probe.sh <<'TEXT'${PROBE}
TEXT
    sed -e '/^Exec/d; /^Notify/d; /^Watchdog/d; /^Restart/d; s/^Type=.*/Type=oneshot/' \\
      -e 's|^WorkingDir.*|&\\nExecStart=/bin/sh /etc/probe.sh ${pid}|' \\
      /src/systemd/podwright-agent.service >/run/systemd/system/probe.service
    systemctl daemon-reload && systemctl start probe`);
  const seen = await line('cat /var/lib/podwright/probe.txt');
  expect(seen.split('\n')).toEqual([
    ...['may jail', 'may fence', 'may be-meek', 'may restore', 'may signal', 'may look-into'],
    ...['may not write-etc', 'may not write-releases', 'may not read-kernel-log'],
    ...['may not other-network', 'may not make-devices', 'may not set-clock'],
  ]);
});

/** As the README has a provider do it: for the agent, and for what replaces it. */
async function giveCredentials(credentials: Record<string, string>): Promise<void> {
  const lines = Object.keys(credentials).map(
    (name) => `LoadCredential=${name}:/etc/podwright/credentials/agent.${name}`,
  );
  for (const [name, text] of Object.entries(credentials)) {
    await host.mustRun(
      `umask 077 && cat >/etc/podwright/credentials/agent.${name} <<'TEXT'\n${text}\nTEXT`,
    );
  }
  await host.mustRun(`for unit in podwright-agent podwright-agent-update; do
    mkdir -p /etc/systemd/system/$unit.service.d
    printf '[Service]\n${lines.join('\n')}\n' >/etc/systemd/system/$unit.service.d/20-credentials.conf
  done`);
}

it('reads the login for a registry that is a credential of the validator', async () => {
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

/** What the agent says of its update, once it is so. */
const updateStatus = (what: string, holds: (found: UpdateStatus) => boolean) =>
  eventually(
    what,
    async () => {
      const { stdout } = await host.run('busybox wget -qO- http://127.0.0.1:8080/update-status');
      const found = stdout.includes('"state"') ? UpdateStatus.parse(JSON.parse(stdout)) : null;
      return found !== null && holds(found) ? found : null;
    },
    60_000,
  );

it(
  'exchanges its release for a signed one, goes back from one that ends, and goes on after a kill of the switcher',
  async () => {
    const updates = await startTreeUpdates(host);
    const pod = `podwright-test-pod-${EXECUTOR}`;
    const first = await current();
    try {
      const labels = Object.entries({ executor: EXECUTOR, kind: 'pod', managed: '1', pod: 'x' });
      const flags = labels.flatMap(([key, value]) => ['--label', `io.podwright.${key}=${value}`]);
      await docker('run', '--detach', '--name', pod, ...flags, 'podwright.local/base:1');
      const podState = async () =>
        (await docker('inspect', '--format', '{{json .State}}', pod)).stdout;
      const before = await podState();
      await host.mustRun(
        `cp /etc/podwright/agent.env /root/agent.env && echo '${updates.variables}' >>/etc/podwright/agent.env`,
      );
      await giveCredentials(updates.credentials);
      const bad = await updates.release(ENDS);
      await host.mustRun(
        `systemctl daemon-reload && ${INSTALL} && systemctl restart podwright-agent`,
      );
      const refused = await updateStatus('a refusal', ({ reason }) => reason !== null);
      expect(refused).toMatchObject({
        reason: 'INSTALLATION_UNSUITABLE',
        message: expect.stringContaining('podwright-validator.service runs from there too'),
      });
      // Out of sight alone: it runs on.
      await host.mustRun(`cd /etc/systemd/system && mv podwright-validator.service podwright-central.service /root/ &&
        systemctl restart podwright-agent`);
      const back = await updateStatus('going back', ({ state }) => state === 'ROLLED_BACK');
      expect(back).toMatchObject({
        ...{ reason: 'NEW_VERSION_ENDED', target_digest: bad, attempts: 1 },
        message: expect.stringContaining('it cannot go on'),
      });
      expect(await current()).toBe(first);

      const good = await updates.release(WORKS);
      await host.mustRun(`for try in $(seq 1000); do [ -e /opt/podwright/trial ] && break; sleep 0.02; done
        systemctl kill --signal=KILL podwright-agent-update`);
      const row = () => line(READ_ROW);
      await eventually('the new version', async () => (await row()).startsWith('COMMITTED'));
      expect(await current()).toBe(`releases/${good.replace(':', '-')}`);
      expect(await line('readlink /opt/podwright/previous')).toBe(first);
      expect(await line('busybox wget -qO- http://127.0.0.1:8080/version')).toContain('9.9.9');
      await eventually('the gateway that follows', async () => {
        const said = await host.mustRun('journalctl --unit podwright-ssh-gateway');
        return said.includes('gateway of a new release');
      });
      const journal = await host.mustRun('journalctl --unit podwright-agent-update');
      expect(journal).toMatch(/status=9\/KILL/);
      await eventually(
        'the end of the switcher',
        async () => (await host.run('[ -e /var/lib/podwright/update-request ]')).exitCode !== 0,
      );
      expect(await podState()).toBe(before);
    } finally {
      await docker('rm', '--force', pod);
      await updates.close();
    }
    await host.mustRun(
      `mv /root/podwright-*.service /etc/systemd/system/; mv /root/agent.env /etc/podwright/agent.env
      rm -r /etc/systemd/system/podwright-agent*.service.d && systemctl daemon-reload`,
    );
    expect(await host.mustRun(INSTALL)).toMatch(/serves: agent validator central/);
    expect(await current()).toBe(first);
  },
  LONG_MS,
);

it(
  'has a validator and a central API that stand still restarted by the watchdog',
  async () => {
    const units = ['podwright-validator', 'podwright-central'];
    await host.mustRun(`for unit in ${units.join(' ')}; do drop=/run/systemd/system/$unit.service.d
      mkdir -p $drop && printf '[Service]\\nWatchdogSec=4\\nRestartSec=0\\n' >$drop/watchdog.conf; done
      systemctl daemon-reload && systemctl restart ${units.join(' ')}`);
    const pids = await Promise.all(units.map(mainPid));
    await host.mustRun(`kill -STOP ${pids.join(' ')}`);
    await eventually('restarts', async () => {
      const active = await host.run(`systemctl is-active ${units.join(' ')}`);
      const now = await Promise.all(units.map(mainPid));
      return active.exitCode === 0 && now.every((pid, index) => pid !== pids[index]);
    });
    for (const unit of units) {
      expect(await host.mustRun(`journalctl --unit ${unit}`)).toMatch(/Watchdog timeout/);
    }
    await host.mustRun(
      'rm -r /run/systemd/system/podwright-*.service.d && systemctl daemon-reload',
    );
  },
  LONG_MS,
);

it(
  'has a central API that ends in order and answers as soon as it counts as started',
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
  'ends the pods of its executor in order when told, and touches no other container',
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
      const said = docker('logs', '--follow', pod);
      const done = await host.mustRun(`${UNINSTALL} --keep-data --component agent --pods remove`);
      expect(done).toMatch(/removed 1 containers/);
      expect((await said).stdout).toContain('in order');
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

it(
  'upgrades, and takes a release back that does not serve',
  async () => {
    await smallTree('/root/second', '0.2.0', SERVES);
    // The agent, too, which comes back to what it has left.
    await host.mustRun('sh /root/second/systemd/install.sh --component agent --probation 0');
    const second = await current();
    expect(second).toMatch(/^releases\/0\.2\.0-/);
    await smallTree('/root/broken', '0.3.0', BREAKS);
    const refused = await host.run('sh /root/broken/systemd/install.sh --probation 0');
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/0\.3\.0-.* was taken back/),
    });
    expect(await current()).toBe(second);
    expect(await line(`systemctl is-active ${SERVING}`)).toBe('active\n'.repeat(4).trim());
  },
  LONG_MS,
);

it(
  'is repeated after a kill at any step, with a whole release running all the time, and goes back when told',
  async () => {
    const before = await current();
    const pid = await mainPid('podwright-validator');
    const killAt = (sign: string) =>
      host.mustRun(
        `setsid sh /root/third/systemd/install.sh --probation 60 >/dev/null 2>&1 & shell=$!
       for try in $(seq 2000); do if ${sign}; then kill -KILL -$shell; exit; fi; sleep 0.02; done; exit 1`,
      );
    await smallTree('/root/third', '0.4.0', SERVES);
    await killAt('[ -d /opt/podwright/releases/.new ]');
    expect(await current()).toBe(before);
    expect(await mainPid('podwright-validator')).toBe(pid);
    await killAt('[ -e /opt/podwright/trial ]');
    const again = await host.mustRun('sh /root/third/systemd/install.sh --probation 0');
    expect(again).toMatch(/serves/);
    expect(await current()).toMatch(/0\.4\.0-/);
    expect(await line('readlink /opt/podwright/previous')).toBe(before);
    const left = await host.run('ls -d /opt/podwright/trial /opt/podwright/releases/.new');
    expect(left.stdout).toBe('');
    const back = 'sh /opt/podwright/current/systemd/install.sh --rollback --probation 0';
    expect(await host.mustRun(back)).toMatch(/serves/);
    expect(await current()).toBe(before);
  },
  LONG_MS,
);

it(
  'keeps data or removes it, and refuses while there are pods',
  async () => {
    const labels = [
      '--label',
      'io.podwright.pod=x',
      '--label',
      `io.podwright.executor=${EXECUTOR}`,
    ];
    const pod = `podwright-test-pod-${EXECUTOR}`;
    await docker('create', '--name', pod, ...labels, 'podwright.local/base:1', 'true');
    try {
      const refused = await host.run(`${UNINSTALL} --keep-data`);
      expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/1 pods here/) });
      await host.mustRun(`${UNINSTALL} --keep-data --component agent --pods leave`);
      expect((await docker('inspect', pod)).exitCode).toBe(0);
    } finally {
      await docker('rm', '--force', pod);
    }
    const units = 'ls /etc/systemd/system | grep podwright';
    expect(await line(units)).toBe(
      'podwright-central.service\npodwright-validator.service\npodwright.slice',
    );
    await host.mustRun(`${UNINSTALL} --keep-data`);
    expect(await line('ls /etc/podwright; ls /var/lib | grep podwright; ls /opt')).toBe(
      'agent.env\ncentral.env\ncredentials\nvalidator.env\npodwright\npodwright-central\npodwright-validator',
    );
    await host.mustRun('sh /src/systemd/uninstall.sh --purge');
    const all = 'ls /etc /opt /var/lib /var/cache /etc/systemd/system | grep podwright || true';
    expect(await line(all)).toBe('');
  },
  LONG_MS,
);
