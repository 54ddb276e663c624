/**
 * Upgrades, rollbacks and removal of an installation under a real systemd, with small trees instead of the real one.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { command, mustRun } from '../fakes/agents/real-host.ts';
import { type SystemdHost, startSystemdHost } from '../fakes/external/systemd-host.ts';

const INSTALL = 'systemd/install.sh --probation 0';
const UNINSTALL = 'sh /opt/podwright/current/systemd/uninstall.sh';
const SERVING = 'podwright-agent podwright-ssh-gateway podwright-validator podwright-central';
const EXECUTOR = systemRandom.uuid();
const SERVES = `import { execFileSync } from 'node:child_process';
const notify = () => execFileSync('systemd-notify', ['READY=1', 'WATCHDOG=1']);
if (process.argv.length === 2) {
  notify();
  setInterval(notify, 500);
}`;
const BREAKS = 'if (process.argv.length === 2) process.exit(1);';
/** Packages that contain only the checkout's Node. With `slow`, installing a release takes that many seconds. */
const packages = (slow: number) => `mkdir -p node_modules/.bin &&
  echo '{"name":"slow-${slow}","packages":{"":{}}}' >package-lock.json &&
  echo '{"packages":{}}' >node_modules/.package-lock.json && cat >node_modules/.bin/node <<'TEXT'
#!/bin/sh
case $0 in */.new/*) sleep ${slow} ;; esac
exec /src/node_modules/.bin/node "$@"
TEXT
  chmod 755 node_modules/.bin/node`;
const LONG_MS = 300_000;

let host: SystemdHost;

beforeAll(async () => {
  host = await startSystemdHost();
  await smallTree('/root/first', '0.1.1', SERVES);
  const all = '--component validator --component agent --component central';
  expect(await host.mustRun(`sh /root/first/${INSTALL} ${all}`)).toMatch(/serves: agent valid/);
  await host.mustRun(`echo AGENT_EXECUTOR_ID=${EXECUTOR} >>/etc/podwright/agent.env`);
}, LONG_MS);
afterAll(() => host?.remove());

const line = async (script: string) => (await host.mustRun(script)).trim();
const current = () => line('readlink /opt/podwright/current');
const mainPid = (unit: string) => line(`systemctl show --property=MainPID --value ${unit}`);

/** A tree that is installed like the real one; `program` is what its services run. */
const smallTree = (path: string, version: string, program: string, slow = 0) =>
  host.mustRun(`set -e; umask 077; mkdir -p ${path}/agent/ssh-gateway ${path}/validator/central ${path}/shared && cd ${path} &&
    cp -r /src/systemd /src/README.md /src/LICENSE . && ${packages(slow)}
    sed 's/"version": .*/"version": "${version}",/' /src/package.json >package.json &&
    for main in agent agent/ssh-gateway shared validator validator/central; do echo "${program}" >$main/main.ts; done
    touch agent/serve.ts agent/ssh-gateway/gateway.ts validator/serve.ts validator/central/serve.ts`);

it(
  'install.sh upgrades, and rolls back a release that does not serve',
  async () => {
    await smallTree('/root/second', '0.2.0', SERVES);
    await host.mustRun(`sh /root/second/${INSTALL}`);
    const second = await current();
    expect(second).toMatch(/^releases\/0\.2\.0-/);
    await smallTree('/root/broken', '0.3.0', BREAKS);
    const refused = await host.run(`sh /root/broken/${INSTALL}`);
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/0\.3\.0-.* was rolled back/),
    });
    expect(await current()).toBe(second);
    expect(await line(`systemctl is-active ${SERVING}`)).toBe('active\n'.repeat(4).trim());
  },
  LONG_MS,
);

it(
  'install.sh resumes after a kill at any step, always runs a complete release, and rolls back on request',
  async () => {
    const before = await current();
    const pid = await mainPid('podwright-validator');
    const killAt = (sign: string) =>
      host.mustRun(
        `setsid sh /root/third/systemd/install.sh --probation 60 >/dev/null 2>&1 & shell=$!
       for try in $(seq 2000); do if ${sign}; then kill -KILL -$shell; exit; fi; sleep 0.02; done; exit 1`,
      );
    await smallTree('/root/third', '0.4.0', SERVES, 1);
    await killAt('[ -d /opt/podwright/releases/.new ]');
    expect(await current()).toBe(before);
    expect(await mainPid('podwright-validator')).toBe(pid);
    await killAt('[ -e /opt/podwright/trial ]');
    const again = await host.mustRun(`sh /root/third/${INSTALL}`);
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
  'uninstall.sh retains or removes data, and refuses while pods exist',
  async () => {
    const labels = [
      '--label',
      'io.podwright.pod=x',
      '--label',
      `io.podwright.executor=${EXECUTOR}`,
    ];
    const pod = `podwright-test-pod-${EXECUTOR}`;
    await mustRun('docker', 'create', '--name', pod, ...labels, 'podwright.local/base:1', 'true');
    try {
      const refused = await host.run(`${UNINSTALL} --keep-data`);
      expect(refused).toMatchObject({
        exitCode: 1,
        stderr: expect.stringMatching(/This host has 1 pods/),
      });
      await host.mustRun(`${UNINSTALL} --keep-data --component agent --pods leave`);
      expect((await command('docker', 'inspect', pod)).exitCode).toBe(0);
    } finally {
      await command('docker', 'rm', '--force', pod);
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

it(
  'uninstall.sh --purge removes nothing that a process uses, and no folder without the installer’s mark',
  async () => {
    const install = `sh /root/first/${INSTALL} --component validator --component central`;
    await host.mustRun(install);
    const home = '/var/lib/private/podwright-validator';
    const files = () => line(`find /opt/podwright /etc/podwright ${home} | sort`);
    const before = await files();
    const pid = await line(`cd ${home} && { sleep 600 >/dev/null 2>&1 & echo $!; }`);
    const refused = await host.run(`${UNINSTALL} --purge`);
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(new RegExp(`processes use ${home}.*\\n +${pid} sleep 600`)),
    });
    expect(await files()).toBe(before);
    await host.mustRun(`kill ${pid}; rm /var/lib/private/podwright-central/.podwright-installed`);
    const done = await host.mustRun(`${UNINSTALL} --purge`);
    expect(done).toContain('kept /var/lib/private/podwright-central: the installer did not');
    const left =
      'ls -d /opt/* /etc/podwright /var/lib/podwright* /var/lib/private/podwright* || true';
    expect(await line(`${left} 2>/dev/null`)).toBe(
      '/var/lib/podwright-central\n/var/lib/private/podwright-central',
    );
    await host.mustRun('rm -r /var/lib/podwright-central /var/lib/private/podwright-central');
  },
  LONG_MS,
);

it(
  'uninstall.sh --purge removes no folder of the user: existing folders, links, homes in variables, drop-ins',
  async () => {
    const dropIn = '/etc/systemd/system/podwright-validator.service.d/20-own.conf';
    const own = [
      '/opt/podwright/own',
      '/etc/podwright/own',
      '/srv/data/own',
      '/srv/home/own',
      dropIn,
    ];
    await host.mustRun(
      `for file in ${own.join(' ')}; do mkdir -p $(dirname $file) && : >$file; done`,
    );
    await host.mustRun(`sh /root/first/${INSTALL} --component agent --component validator`);
    // A link in place of a folder, with a copied mark that names another folder.
    await host.mustRun(`systemctl stop podwright-agent podwright-ssh-gateway
      rm -r /var/lib/podwright && ln -s /srv/data /var/lib/podwright
      cp /var/cache/podwright-agent/.podwright-installed /srv/data/
      echo AGENT_HOME=/ >>/etc/podwright/agent.env
      echo VALIDATOR_HOME=/srv/home >>/etc/podwright/validator.env`);
    const done = await host.mustRun(`${UNINSTALL} --purge --pods leave`);
    for (const folder of [
      '/',
      '/srv/home',
      '/opt/podwright',
      '/etc/podwright',
      '/var/lib/podwright',
    ]) {
      expect(done).toContain(`kept ${folder}: `);
    }
    expect(await line(`ls ${own.join(' ')}; readlink /var/lib/podwright`)).toBe(
      [...own.toSorted(), '/srv/data'].join('\n'),
    );
    const gone = '/opt/podwright/releases /opt/podwright/current /var/cache/podwright-agent';
    const left = await host.run(`ls -d ${gone} /var/lib/private/podwright-validator`);
    expect(left.stdout).toBe('');
  },
  LONG_MS,
);
