/**
 * The parts of a validator's diagnosis archive. They are collected independently, so that one failure does not affect
 * the others.
 */
import { readFileSync } from 'node:fs';
import type { Part } from '#shared/check/archive/archive.ts';
import {
  journalPart,
  logParts,
  metricsPart,
  unitsPart,
  versionsPart,
} from '#shared/check/archive/host-parts.ts';
import { createRedact, type Redact } from '#shared/check/archive/redact.ts';
import { type DoctorPorts, type Finding, textReport } from '#shared/check/doctor.ts';
import { localHostAndPort } from '#shared/http/listen.ts';
import { configuredSecrets, inspectConfig, settingsText } from '#shared/runtime/config.ts';
import { servesTls } from '#shared/tls/tls-mode.ts';
import { storeTarget, VALIDATOR_CONFIG, type ValidatorConfig } from '../config.ts';
import { ownKeyLocation } from '../keys/own-key.ts';
import { summarizeStore } from '../store/evidence-store.ts';

const UNITS = ['podwright-validator'];

/** Writes the archive. With an invalid configuration, parts that need one are left out. */
export async function archiveValidator(
  ports: DoctorPorts,
  logs: readonly string[],
  examine: () => Promise<Finding[]>,
): Promise<{ parts: readonly Part[]; redact: Redact }> {
  const { clock, runCommand, environment } = ports;
  const look = inspectConfig(VALIDATOR_CONFIG, environment);
  const { config } = look;
  const messages = [...look.problems, ...look.warnings].map(({ message }) => `${message}\n`);
  const keys = config === null ? [] : keyTexts(config);
  return {
    redact: createRedact([...configuredSecrets(VALIDATOR_CONFIG, environment), ...keys]),
    parts: [
      versionsPart(runCommand, [['psql', '--version']]),
      {
        name: 'configuration.txt',
        collect: async () => settingsText(look.settings) + messages.join(''),
      },
      { name: 'doctor.txt', collect: async () => textReport(await examine(), false) },
      ...(config === null ? [] : [ledgerPart(config), metricsPart(clock, metricsUrl(config))]),
      unitsPart(runCommand, UNITS),
      journalPart(runCommand, UNITS),
      ...logParts(logs),
    ],
  };
}

function ledgerPart(config: ValidatorConfig): Part {
  return {
    name: 'ledger.txt',
    async collect() {
      const look = await summarizeStore(storeTarget(config));
      if (look === null) return 'does not exist yet\n';
      const lines = look.tables.map(({ name, rows }) => `${name}: ${rows} rows`);
      return `schema ${look.schema}, this version: ${look.known}\n${lines.join('\n')}\n`;
    },
  };
}

/**
 * Contents of the key files that this user can read, which are redacted. A file that cannot be read cannot be part of
 * the collected texts.
 */
function keyTexts(config: ValidatorConfig): string[] {
  const place = ownKeyLocation(config);
  const paths = place.kind === 'seed' ? [place.path] : [place.path, place.passphraseFile];
  return paths.flatMap((path) => {
    try {
      const text = readFileSync(path, 'utf8').trim();
      return [text, text.replace(/^0x/i, '')];
    } catch {
      return [];
    }
  });
}

function metricsUrl(config: ValidatorConfig): string {
  const { VALIDATOR_METRICS_LISTEN: listen, VALIDATOR_TLS: mode } = config;
  const { VALIDATOR_HOST: host, VALIDATOR_PORT: port } = config;
  if (listen !== undefined) return `http://${localHostAndPort(listen.host, listen.port)}/metrics`;
  return `${servesTls(mode, host) ? 'https' : 'http'}://${localHostAndPort(host, port)}/metrics`;
}
