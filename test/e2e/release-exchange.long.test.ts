/** An agent under a real systemd replaces its release with a signed one, with all credentials of its service. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { UpdateStatus } from '#shared/api/agent/update-status.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { command, mustRun } from '../fakes/agents/real-host.ts';
import { ENDS, startTreeUpdates, type TreeUpdates, WORKS } from '../fakes/agents/tree-updates.ts';
import { type SystemdHost, startSystemdHost } from '../fakes/external/systemd-host.ts';

const EXECUTOR = systemRandom.uuid();
const POD = `podwright-test-pod-${EXECUTOR}`;
const STATUS = 'busybox wget -qO /root/status http://127.0.0.1:8080/update-status';
/** Unit of another service that runs from the same releases. */
const OTHER_UNIT = '/etc/systemd/system/podwright-validator.service';
/**
 * Shell command that waits until the agent's store has the state COMMITTED: the small release has no /update-status.
 */
const COMMITTED = `/src/node_modules/.bin/node -e '
  const { DatabaseSync } = require("node:sqlite");
  const store = new DatabaseSync("/var/lib/podwright/agent.sqlite", { timeout: 10000 });
  const row = store.prepare("SELECT row_json FROM agent_update");
  const poll = () => JSON.parse(row.get().row_json).state === "COMMITTED" || setTimeout(poll, 100);
  poll();'`;
/** The real program starts several times, on a host that may be busy. */
const LONG_MS = 300_000;

let host: SystemdHost;
let updates: TreeUpdates;

beforeAll(async () => {
  host = await startSystemdHost();
  updates = await startTreeUpdates(host);
  await installCredentials(updates.credentials);
  await host.mustRun(`umask 077 && cat >/etc/podwright/agent.env <<'TEXT'
AGENT_EXECUTOR_ID=${EXECUTOR}
AGENT_GPU=none
AGENT_HOST=127.0.0.1
AGENT_TLS=off
${updates.variables}
TEXT
    sh /src/systemd/install.sh --component agent --probation 0`);
  const labels = Object.entries({ executor: EXECUTOR, kind: 'pod', managed: '1', pod: 'x' });
  const flags = labels.flatMap(([key, value]) => ['--label', `io.podwright.${key}=${value}`]);
  const place = ['--detach', '--name', POD, '--network', 'none'];
  await mustRun('docker', 'run', ...place, ...flags, 'podwright.local/base:1');
}, LONG_MS);

afterAll(async () => {
  await command('docker', 'rm', '--force', POD);
  await updates?.close();
  await host?.remove();
});

const line = async (script: string) => (await host.mustRun(script)).trim();
const current = () => line('readlink /opt/podwright/current');
const podState = () => mustRun('docker', 'inspect', '--format', '{{json .State}}', POD);

/** Installs credentials as the README describes, for the agent and for the process that replaces it. */
async function installCredentials(credentials: Record<string, string>): Promise<void> {
  const lines = Object.keys(credentials).map(
    (name) => `LoadCredential=${name}:/etc/podwright/credentials/agent.${name}`,
  );
  for (const [name, text] of Object.entries(credentials)) {
    await host.mustRun(`umask 077 && mkdir -p /etc/podwright/credentials &&
      cat >/etc/podwright/credentials/agent.${name} <<'TEXT'\n${text}\nTEXT`);
  }
  await host.mustRun(`for unit in podwright-agent podwright-agent-update; do
    mkdir -p /etc/systemd/system/$unit.service.d
    printf '[Service]\n${lines.join('\n')}\n' >/etc/systemd/system/$unit.service.d/20-credentials.conf
  done`);
}

/** Returns the agent's update status once it contains `sign`. */
async function statusWith(sign: string): Promise<UpdateStatus> {
  await host.until(`${STATUS} 2>/dev/null && grep -q '${sign}' /root/status`);
  return UpdateStatus.parse(JSON.parse(await host.mustRun('cat /root/status')));
}

it(
  'the agent reports why it cannot update, rolls back a release that exits, and updates despite a kill of the switcher',
  async () => {
    const [first, before] = [await current(), await podState()];
    await host.mustRun(`: >${OTHER_UNIT}`);
    expect(await statusWith('INSTALLATION_UNSUITABLE')).toMatchObject({
      message: expect.stringContaining('podwright-validator.service runs from the same folder'),
    });
    const bad = await updates.release(ENDS);
    await host.mustRun(`rm ${OTHER_UNIT}`);
    expect(await statusWith('ROLLED_BACK')).toMatchObject({
      reason: 'NEW_VERSION_ENDED',
      target_digest: bad,
      attempts: 1,
      message: expect.stringContaining('this release cannot start'),
    });
    expect(await current()).toBe(first);

    const good = await updates.release(WORKS);
    await host.until('[ -e /opt/podwright/trial ]');
    await host.mustRun('systemctl kill --signal=KILL podwright-agent-update');
    await host.mustRun(COMMITTED);
    expect(await current()).toBe(`releases/${good.replace(':', '-')}`);
    expect(await line('readlink /opt/podwright/previous')).toBe(first);
    expect(await line('busybox wget -qO- http://127.0.0.1:8080/version')).toContain('9.9.9');
    await host.until(
      'journalctl --unit podwright-ssh-gateway | grep -q "gateway of a new release"',
    );
    const journal = await host.mustRun('journalctl --unit podwright-agent-update');
    expect(journal).toMatch(/status=9\/KILL/);
    // Waits until the switcher has ended.
    await host.until('[ ! -e /var/lib/podwright/update-request ]');
    expect(await podState()).toBe(before);
  },
  LONG_MS,
);
