/**
 * The parts of a central API's diagnosis archive. The parts are collected independently, so that the failure of one
 * part does not affect the others.
 */
import { existsSync, readFileSync } from 'node:fs';
import type { Part } from '#shared/check/archive/archive.ts';
import {
  journalPart,
  leftOut,
  logParts,
  metricsPart,
  unitsPart,
  versionsPart,
} from '#shared/check/archive/host-parts.ts';
import { createRedact, type Redact, secretForms } from '#shared/check/archive/redact.ts';
import { type DoctorPorts, type Finding, textReport } from '#shared/check/doctor.ts';
import { observe, valueOrNull } from '#shared/check/observe.ts';
import { localHostAndPort } from '#shared/http/listen.ts';
import { configuredSecrets, inspectConfig, settingsText } from '#shared/runtime/config.ts';
import { isPostgresAddress } from '../../database/open-database.ts';
import {
  CENTRAL_CONFIG,
  type CentralConfig,
  centralSecretFile,
  centralSeedFile,
} from '../config.ts';
import { centralDatabaseOf, readCentralSecret } from '../platform/central-home.ts';
import { readCentralDatabase } from '../platform/database/database.ts';
import { tablesOf } from './central-facts.ts';
import { storedSecrets } from './stored-secrets.ts';

const UNITS = ['podwright-central'];
const SECRETS_MS = 30_000;

/**
 * Writes the archive. If the secrets in the database cannot be read, they cannot be redacted: the archive then lacks
 * the logs and the journal. If the configuration is invalid, parts that need it are left out.
 */
export async function archiveCentral(
  ports: DoctorPorts,
  logs: readonly string[],
  examine: () => Promise<Finding[]>,
): Promise<{ parts: readonly Part[]; redact: Redact }> {
  const { clock, runCommand, environment } = ports;
  const inspected = inspectConfig(CENTRAL_CONFIG, environment);
  const { config } = inspected;
  const messages = [...inspected.problems, ...inspected.warnings].map(
    ({ message }) => `${message}\n`,
  );
  const configured = configuredSecrets(CENTRAL_CONFIG, environment);
  const redact = await observe(clock, SECRETS_MS, async () =>
    createRedact([...configured, ...(await secretsOf(config))]),
  );
  const withSecrets = [journalPart(runCommand, UNITS), ...logParts(logs)];
  return {
    redact: valueOrNull(redact) ?? createRedact(configured),
    parts: [
      versionsPart(runCommand, [
        ['psql', '--version'],
        ['restic', 'version'],
      ]),
      {
        name: 'configuration.txt',
        collect: async () => settingsText(inspected.settings) + messages.join(''),
      },
      { name: 'doctor.txt', collect: async () => textReport(await examine(), false) },
      ...(config === null ? [] : partsOf(ports, config)),
      unitsPart(runCommand, UNITS),
      ...('problem' in redact
        ? withSecrets.map((part) => leftOut(part, `the database's secrets: ${redact.problem}`))
        : withSecrets),
    ],
  };
}

function partsOf({ clock }: DoctorPorts, config: CentralConfig): Part[] {
  const { CENTRAL_METRICS_LISTEN: listen } = config;
  const metrics =
    listen === undefined
      ? []
      : [metricsPart(clock, `http://${localHostAndPort(listen.host, listen.port)}/metrics`)];
  return [
    {
      name: 'database.txt',
      async collect() {
        const tables = await tablesOf(config);
        if (tables === null) return 'does not exist yet\n';
        return tables.map(({ name, rows }) => `${name}: ${rows} rows\n`).join('');
      },
    },
    ...metrics,
  ];
}

/** Returns the secrets in the files and in the database of the central API. Throws if one cannot be read. */
async function secretsOf(config: CentralConfig | null): Promise<string[]> {
  if (config === null) throw new Error('the configuration is not valid');
  const seedFile = centralSeedFile(config);
  const seed = existsSync(seedFile) ? readFileSync(seedFile, 'utf8').trim() : '';
  const secret = readCentralSecret(centralSecretFile(config));
  const address = centralDatabaseOf(config);
  const ofFiles = [seed, seed.replace(/^0x/i, ''), ...(secret === null ? [] : secretForms(secret))];
  if (!isPostgresAddress(address) && !existsSync(address)) return ofFiles;
  if (secret === null) throw new Error(`${centralSecretFile(config)} is missing`);
  const place = { address, variable: 'CENTRAL_DATABASE' };
  return [...ofFiles, ...(await readCentralDatabase(place, (db) => storedSecrets(db, secret)))];
}
