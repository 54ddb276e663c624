/** What a bundle about an agent holds: every part by itself, so that one that is away takes no other along. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Part } from '#shared/check/diagnosis/bundle.ts';
import {
  commandPart,
  journalParts,
  logParts,
  metricsPart,
  unitsPart,
  versionsPart,
} from '#shared/check/diagnosis/host-parts.ts';
import { createRedact, type Redact } from '#shared/check/diagnosis/redact.ts';
import { textReport } from '#shared/check/report.ts';
import { known, tell } from '#shared/check/told.ts';
import { localPlaceOf } from '#shared/http/listen.ts';
import { lookAtConfig, settingsText } from '#shared/runtime/config.ts';
import { openSqliteToRead } from '#shared/runtime/sqlite.ts';
import { AGENT_CONFIG, type AgentConfig, dockerSocketOf, isSecure } from '../../config.ts';
import { createDockerodeEngine } from '../../containers/engine/dockerode-engine.ts';
import { LABELS } from '../../containers/engine/engine.ts';
import { readEngineReport } from '../../containers/engine/engine-report.ts';
import { TABLE } from '../../containers/network/firewall-rules.ts';
import { STORE_FILE } from '../../database/database.ts';
import { readConfiguration } from '../configuration.facts.ts';
import { type DoctorPorts, examine } from '../examine.ts';
import { storeSecrets } from './store-secrets.ts';
import { storeSummary } from './store-summary.ts';

const UNITS = ['podwright-agent', 'podwright-ssh-gateway', 'podwright-kernel-log'];
const PROGRAMS = [
  ['docker', '--version'],
  ['restic', 'version'],
  ['iptables', '--version'],
] as const;
const ENGINE_MS = 10_000;
const STORE_MS = 10_000;
const NO_CONTAINER = { json: false, help: false, container: false, address: null, timeFrom: null };

/** Where the secrets of the store cannot be read they could not be hidden either: what may hold them is left out. */
export async function diagnoseAgent(
  ports: DoctorPorts,
  logs: readonly string[],
): Promise<{ parts: readonly Part[]; redact: Redact }> {
  const { clock, runCommand, environment } = ports;
  const { config } = readConfiguration(environment);
  const redact = await tell(clock, STORE_MS, async () => createRedact(secretsOf(config)));
  const wordy = [storePart(config), ...journalParts(runCommand, UNITS), ...logParts(logs)];
  return {
    redact: known(redact) ?? createRedact([]),
    parts: [
      versionsPart(runCommand, PROGRAMS),
      configurationPart(ports),
      {
        name: 'doctor.txt',
        collect: async () => textReport(await examine(ports, NO_CONTAINER), false),
      },
      ...engineParts(ports, config),
      // That of our own rules: what the host forbids or allows beside them is the provider's own.
      commandPart('firewall.txt', runCommand, 'iptables', '-w', '-t', TABLE, '-S'),
      commandPart('nvidia-smi.txt', runCommand, config.AGENT_NVIDIA_SMI, '-q'),
      metricsPart(clock, metricsUrl(config)),
      unitsPart(runCommand, UNITS),
      ...('problem' in redact ? wordy.map((part) => leftOut(part, redact.problem)) : wordy),
    ],
  };
}

function leftOut({ name }: Part, problem: string): Part {
  const why = `left out, for the store's secrets could not be hidden in it: ${problem}\n`;
  return { name, collect: async () => why };
}

function configurationPart({ environment }: DoctorPorts): Part {
  return {
    name: 'configuration.txt',
    async collect() {
      const { settings, problems, warnings } = lookAtConfig(AGENT_CONFIG, environment);
      const words = [...problems, ...warnings].map(({ message }) => `${message}\n`);
      return settingsText(settings) + words.join('');
    },
  };
}

const storeIn = (config: AgentConfig) => join(config.AGENT_HOME, STORE_FILE);

function storePart(config: AgentConfig): Part {
  return {
    name: 'store.txt',
    collect: async () => withStore(config, (database) => storeSummary(database, storeIn(config))),
  };
}

function secretsOf(config: AgentConfig): string[] {
  if (!existsSync(storeIn(config))) return [];
  return withStore(config, (database) => storeSecrets(database, config.AGENT_HOME));
}

function withStore<T>(
  config: AgentConfig,
  look: (database: ReturnType<typeof openSqliteToRead>) => T,
): T {
  const database = openSqliteToRead(storeIn(config));
  try {
    return look(database);
  } finally {
    database.close();
  }
}

/** The engine, and of its containers those of this executor alone. */
function engineParts({ clock, environment }: DoctorPorts, config: AgentConfig): Part[] {
  const socketPath = dockerSocketOf(config, environment['DOCKER_HOST']);
  return [
    {
      name: 'engine.json',
      collect: async () =>
        `${JSON.stringify(await readEngineReport(socketPath, clock.deadline(ENGINE_MS)), null, 2)}\n`,
    },
    {
      name: 'containers.json',
      async collect() {
        const engine = createDockerodeEngine({ socketPath, clock });
        const found = await engine.listContainers({
          [LABELS.managed]: 'true',
          [LABELS.executor]: config.AGENT_EXECUTOR_ID,
        });
        return `${JSON.stringify(found, null, 2)}\n`;
      },
    },
  ];
}

function metricsUrl(config: AgentConfig): string {
  const { AGENT_METRICS_LISTEN: own, AGENT_HOST: host, AGENT_PORT: port } = config;
  if (own !== undefined) return `http://${localPlaceOf(own.host, own.port)}/metrics`;
  return `${isSecure(config) ? 'https' : 'http'}://${localPlaceOf(host, port)}/metrics`;
}
