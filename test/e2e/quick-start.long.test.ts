/**
 * The quick start of the agent's README, as printed, on a host with systemd: from the packages to a verified node whose
 * metrics are in Prometheus. Central API and validator run on this machine.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DEFAULT_CHECK_POLICY_FILE } from '#shared/check/limits.ts';
import { shellBlock } from '../docs/sessions.ts';
import { type SystemdHost, startSystemdHost } from '../fakes/external/systemd-host.ts';
import { freePorts } from '../fakes/free-ports.ts';
import { type CentralProcess, startCentralProcess } from '../fakes/scenes/central-process.ts';
import { testSigner } from '../fakes/scenes/market-fixture.ts';
import { startValidatorProcess, type ValidatorProcess } from '../fakes/scenes/validator-process.ts';

const LONG_MS = 900_000;
const SEEDS = { validator: 1, central: 2 };
/** Creates the state of a new Debian, and what Debian's package of Prometheus creates: a user, options and folders. */
const DEBIAN = `mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers /var/lib/apt/lists/partial \\
    /var/cache/apt/archives/partial /etc/apt /etc/default /etc/prometheus
  echo 'prometheus:x:119:' >>/etc/group; echo 'prometheus:x:119:119::/:/bin/false' >>/etc/passwd
  echo 'ARGS=""' >/etc/default/prometheus
  install -d -o prometheus -g prometheus /var/lib/prometheus /var/lib/prometheus/metrics2`;
/**
 * Switches off the requirements that depend on this machine: its disk, its network speed, and a registry on the
 * internet.
 */
const POLICY = {
  min_free_disk_gib: 0,
  egress_image: null,
  min_bandwidth_mbit: 0,
  bandwidth_floor_mbit: 0,
};
/**
 * Simulates cards, which the host lacks, and prolongs the agent's watchdog, because the host may be busy;
 * installation.long.test.ts tests the watchdog.
 */
const SIMULATED = `mkdir -p /etc/systemd/system/podwright-agent.service.d
  printf '[Service]\\nWatchdogSec=600\\nEnvironment=AGENT_GPU=simulated "AGENT_SIMULATED_GPUS=NVIDIA L4*2"\\n' \\
    >/etc/systemd/system/podwright-agent.service.d/simulated.conf`;

const folder = mkdtempSync(join(tmpdir(), 'podwright-quick-start-'));
let host: SystemdHost;
let central: CentralProcess | undefined;
let validator: ValidatorProcess | undefined;

beforeAll(async () => {
  host = await startSystemdHost('separate');
  const { first: gatewayPort } = await freePorts(1);
  for (const [name, byte] of Object.entries(SEEDS)) {
    const seed = byte.toString(16).padStart(2, '0').repeat(32);
    writeFileSync(join(folder, `${name}.seed`), seed, { mode: 0o600 });
  }
  central = await startCentralProcess({
    CENTRAL_HOST: '0.0.0.0',
    CENTRAL_HOME: folder,
    CENTRAL_SEED_FILE: join(folder, 'central.seed'),
    CENTRAL_GATEWAY_URL: `http://127.0.0.1:${gatewayPort}`,
    CENTRAL_GATEWAY_HOTKEY: testSigner(SEEDS.validator).hotkey,
  });
  const policy = join(folder, 'policy.json');
  writeFileSync(
    policy,
    JSON.stringify({ ...JSON.parse(readFileSync(DEFAULT_CHECK_POLICY_FILE, 'utf8')), ...POLICY }),
  );
  validator = await startValidatorProcess({
    VALIDATOR_HOME: folder,
    VALIDATOR_PORT: String(gatewayPort),
    VALIDATOR_CHECK_POLICY: policy,
    VALIDATOR_SEED_FILE: join(folder, 'validator.seed'),
    VALIDATOR_CENTRAL_URL: `${central.origin}/api`,
    VALIDATOR_CENTRAL_HOTKEY: testSigner(SEEDS.central).hotkey,
  });
  writeFileSync(join(folder, 'status'), readFileSync('/var/lib/dpkg/status'));
  await host.copy(join(folder, 'status'), '/var/lib/dpkg/status');
  await host.mustRun(`${DEBIAN}\n${SIMULATED}`);
}, LONG_MS);

afterAll(async () => {
  await host?.remove();
  await validator?.end();
  await central?.end();
  rmSync(folder, { recursive: true, force: true });
});

it(
  'leads from a bare host to a verified node with metrics in Prometheus',
  async () => {
    const { port } = new URL(central?.origin ?? '');
    const values = {
      API: `http://${host.machine}:${port}`,
      ADDRESS: host.address,
      GPU: 'L4',
      COUNT: '2',
      PRICE: '0.5',
    };
    const block = shellBlock('agent/README.md', 'Quick start');
    const names = [...block.matchAll(/\$([A-Z]{3,})\b/g)].map(([, name = '']) => name);
    expect(Object.keys(values).filter((name) => !names.includes(name))).toEqual([]);
    const exported = Object.entries(values).map(([name, value]) => `export ${name}=${value}`);
    const output = await host.mustRun(`cd /src\n${exported.join('\n')}\nset -e\n${block}`, LONG_MS);
    expect(output).toMatch(/Logged in at .*\/portal as 5/);
    expect(output).toMatch(/Release \S+ serves: agent/);
    expect(output).toMatch(/^enrolled by 5/m);
    expect(output).toContain('"verified":true');
    const node = await host.mustRun('cd /src && npm run --silent provider -- list --json');
    expect(JSON.parse(node)).toMatchObject([{ status: 'available', blocking_reasons: [] }]);
    const units = 'podwright-agent podwright-ssh-gateway prometheus';
    expect(await host.mustRun(`systemctl is-active ${units}`)).toBe('active\n'.repeat(3));
    expect(await host.mustRun(`systemctl is-enabled ${units}`)).toBe('enabled\n'.repeat(3));
    expect(output).toContain('"__name__":"podwright_agent_pods"');
    const dashboards = output.match(/^systemd\/grafana\/.*\.json$/gm) ?? [];
    expect(dashboards.length).toBeGreaterThan(0);
    for (const path of dashboards) {
      const text = await host.mustRun(`cat /src/${path}`);
      expect(JSON.parse(text)).toMatchObject({ panels: expect.any(Array) });
    }
  },
  LONG_MS,
);
