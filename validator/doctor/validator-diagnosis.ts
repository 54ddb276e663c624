/** What a bundle about a validator holds: every part by itself, so that one that is away takes no other along. */
import { readFileSync } from 'node:fs';
import type { Part } from '#shared/check/diagnosis/bundle.ts';
import {
  journalParts,
  logParts,
  metricsPart,
  unitsPart,
  versionsPart,
} from '#shared/check/diagnosis/host-parts.ts';
import { createRedact, type Redact } from '#shared/check/diagnosis/redact.ts';
import { textReport } from '#shared/check/report.ts';
import { localPlaceOf } from '#shared/http/listen.ts';
import { lookAtConfig, secretTexts, settingsText } from '#shared/runtime/config.ts';
import { servesTls } from '#shared/tls/tls-mode.ts';
import { storeTarget, VALIDATOR_CONFIG, type ValidatorConfig } from '../config.ts';
import { ownKeyLocation } from '../keys/key-commands.ts';
import { summarizeStore } from '../store/evidence-store.ts';
import { examine } from './doctor-command.ts';
import type { DoctorPorts } from './facts.ts';

const UNITS = ['podwright-validator'];

/** Of a configuration that is refused: what there is without one. */
export async function diagnoseValidator(
  ports: DoctorPorts,
  logs: readonly string[],
): Promise<{ parts: readonly Part[]; redact: Redact }> {
  const { clock, runCommand, environment } = ports;
  const look = lookAtConfig(VALIDATOR_CONFIG, environment);
  const { config } = look;
  const words = [...look.problems, ...look.warnings].map(({ message }) => `${message}\n`);
  const known = config === null ? [] : keyTexts(config);
  return {
    redact: createRedact([...secretTexts(VALIDATOR_CONFIG, environment), ...known]),
    parts: [
      versionsPart(runCommand, [['psql', '--version']]),
      {
        name: 'configuration.txt',
        collect: async () => settingsText(look.settings) + words.join(''),
      },
      { name: 'doctor.txt', collect: async () => textReport(await examine(ports), false) },
      ...(config === null ? [] : [ledgerPart(config), metricsPart(clock, metricsUrl(config))]),
      unitsPart(runCommand, UNITS),
      ...journalParts(runCommand, UNITS),
      ...logParts(logs),
    ],
  };
}

function ledgerPart(config: ValidatorConfig): Part {
  return {
    name: 'ledger.txt',
    async collect() {
      const look = await summarizeStore(storeTarget(config));
      if (look === null) return 'there is none yet\n';
      const lines = look.tables.map(({ name, rows }) => `${name}: ${rows} rows`);
      return `schema ${look.schema}, this version: ${look.known}\n${lines.join('\n')}\n`;
    },
  };
}

/** What its key files hold, where they can be read: what cannot be read here is in no text of this user's. */
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
  const { VALIDATOR_METRICS_LISTEN: own, VALIDATOR_TLS: mode } = config;
  const { VALIDATOR_HOST: host, VALIDATOR_PORT: port } = config;
  if (own !== undefined) return `http://${localPlaceOf(own.host, own.port)}/metrics`;
  return `${servesTls(mode, host) ? 'https' : 'http'}://${localPlaceOf(host, port)}/metrics`;
}
