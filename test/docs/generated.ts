/** The generated tables of the READMEs: environment variables, checks, routes, and fields that may be null. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { inspectConfig, type Setting } from '#shared/runtime/config.ts';
import { AGENT_CONFIG } from '../../agent/config.ts';
import { SSH_CONFIG } from '../../agent/ssh-gateway/config.ts';
import { CENTRAL_CONFIG } from '../../validator/central/config.ts';
import { describeChecks, readKnownCheckPolicy } from '../../validator/checks/checks.ts';
import { VALIDATOR_CONFIG } from '../../validator/config.ts';
import { CHEATS } from '../../validator/coverage/cheats.ts';
import { coverageOf } from '../../validator/coverage/coverage.ts';
import { runCoverageCommand } from '../../validator/coverage/coverage-command.ts';
import { PROVIDER_CONFIG } from '../../validator/provider-cli/config.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../../validator/weights/weight-policy.ts';
import { NULLABLE_FIELDS } from '../spec/nullable-fields.ts';
import { readDocuments } from './interface-documents.ts';
import { ownRoutesTable } from './routes-table.ts';
import { selfRentalTable } from './self-rental.ts';
import {
  AGENT_VARIABLES,
  CENTRAL_VARIABLES,
  type Meaning,
  PROVIDER_VARIABLES,
  SSH_VARIABLES,
  VALIDATOR_VARIABLES,
} from './variables.ts';

const ROOT = join(import.meta.dirname, '../..');
const BLOCK = /(<!-- generated:(\S+) -->\n)[\s\S]*?(<!-- \/generated -->)/g;

type Spec = {
  schema: { shape: Record<string, { safeParse(text: unknown): { success: boolean } }> };
};

const TABLES: Readonly<Record<string, () => string | Promise<string>>> = {
  'agent-variables': () =>
    variablesTable(AGENT_CONFIG, inspectConfig(AGENT_CONFIG, {}).settings, AGENT_VARIABLES),
  'ssh-gateway-variables': () =>
    variablesTable(SSH_CONFIG, inspectConfig(SSH_CONFIG, {}).settings, SSH_VARIABLES),
  'provider-variables': () =>
    variablesTable(
      PROVIDER_CONFIG,
      inspectConfig(PROVIDER_CONFIG, {}).settings,
      PROVIDER_VARIABLES,
    ),
  'central-variables': () =>
    variablesTable(CENTRAL_CONFIG, inspectConfig(CENTRAL_CONFIG, {}).settings, CENTRAL_VARIABLES),
  'validator-variables': () =>
    variablesTable(
      VALIDATOR_CONFIG,
      inspectConfig(VALIDATOR_CONFIG, {}).settings,
      VALIDATOR_VARIABLES,
    ),
  checks: checksTable,
  cheats: cheatsTable,
  'hidden-cheats': hiddenCheatsTable,
  'own-routes': async () => ownRoutesTable(await readDocuments()),
  'nullable-fields': nullableFieldsTable,
  'self-rental': selfRentalTable,
};

/** READMEs with generated tables, and the tables that each must have. */
export const GENERATED: Readonly<Record<string, readonly string[]>> = {
  'agent/README.md': ['provider-variables', 'agent-variables', 'ssh-gateway-variables'],
  'systemd/README.md': ['central-variables'],
  'validator/central/ROUTES.md': ['own-routes', 'nullable-fields'],
  'validator/README.md': ['checks', 'cheats', 'hidden-cheats', 'validator-variables'],
  'validator/weights/README.md': ['self-rental'],
};

export function readDocument(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** Names of the generated tables in a document, in document order. */
export function tablesIn(document: string): string[] {
  return [...document.matchAll(BLOCK)].map(([, , name = '']) => name);
}

/** Returns the document with every generated table replaced by its current text. Throws for an unknown table. */
export async function regenerate(document: string): Promise<string> {
  const texts = new Map<string, string>();
  for (const name of tablesIn(document)) {
    const table = TABLES[name];
    if (table === undefined) throw new Error(`unknown table: ${name}`);
    texts.set(name, await table());
  }
  return document.replace(
    BLOCK,
    (_, begin: string, name: string, end: string) => `${begin}\n${texts.get(name)}\n${end}`,
  );
}

function variablesTable(
  { schema: { shape } }: Spec,
  settings: readonly Setting[],
  meanings: Readonly<Record<string, Meaning>>,
): string {
  const rows = settings.map(({ name, value }) => {
    const entry = meanings[name] ?? '';
    const { meaning, unset } = typeof entry === 'string' ? { meaning: entry, unset: '' } : entry;
    const isRequired = shape[name]?.safeParse(undefined).success === false;
    const hasDefault = value !== null && value !== '' && value !== '[]';
    const byDefault = hasDefault ? `\`${value}\`` : unset;
    return `| \`${name}\` | ${isRequired ? '**required**' : byDefault} | ${meaning} |`;
  });
  return ['| Variable | Default | Meaning |', '|---|---|---|', ...rows, ''].join('\n');
}

function nullableFieldsTable(): string {
  const code = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(' ');
  const rows = NULLABLE_FIELDS.map(({ of, fields, reason }) => {
    return `| ${code(of)} | ${code(fields) || 'the answer'} | ${reason} |`;
  });
  return ['| Model | Field | Null or absent if |', '|---|---|---|', ...rows, ''].join('\n');
}

function checksTable(): string {
  const rows = describeChecks().map((check) => {
    const { id, mode, effect, whileRented, detects, required, remedies } = check;
    const shown = effect === 'weight' ? `${mode} (weight only)` : mode;
    const when = whileRented ? `${shown}, rented` : shown;
    const reasons = remedies.map(({ reason }) => `\`${reason}\``).join(' ');
    return `| \`${id}\` | ${when} | ${detects} | ${required} | ${reasons} |`;
  });
  const head = '| Check | Mode | Detects | Requires | Reasons |';
  return [head, '|---|---|---|---|---|', ...rows, ''].join('\n');
}

/** Time at which the default policy is judged in the table of cheats and in the golden file of `policy coverage`. */
const COVERAGE_AT = '2027-01-15T08:00:00Z';
export const COVERAGE_FILE = 'validator/coverage/default-coverage.txt';

const defaultPolicies = () => ({
  checks: readKnownCheckPolicy(),
  weights: readWeightPolicy(DEFAULT_POLICY_FILE),
});

/** Output of `policy coverage` for the default policies at a fixed time. */
export const defaultCoverage = (): string =>
  runCoverageCommand({ words: ['coverage'], at: COVERAGE_AT, ...defaultPolicies() }, 0);

function cheatsTable(): string {
  const atMs = parseIsoTime(COVERAGE_AT) ?? 0;
  const judged = coverageOf({ atMs, ...defaultPolicies() });
  const rows = judged
    .filter(({ cheat }) => cheat.hidden?.foundBy !== 'nothing')
    .map(({ cheat, outcome, reasons, looks, earnsPercent }) => {
      const found = reasons.map((reason) => `\`${reason}\``).join(' ');
      return `| ${cheat.cheat} | ${outcome} | ${found} | ${looks ?? ''} | ${earnsPercent} % |`;
    });
  const head = '| A host that … | Outcome | Found by | Inspections | Earns then |';
  return [head, '|---|---|---|---|---|', ...rows, ''].join('\n');
}

const FOUND_BY = { rentals: 'a hidden rental', nothing: 'no program' };

function hiddenCheatsTable(): string {
  const rows = CHEATS.flatMap(({ cheat, hidden }) =>
    hidden === undefined ? [] : [`| ${cheat} | ${FOUND_BY[hidden.foundBy]} | ${hidden.costs} |`],
  );
  return [
    '| A host that … | Found by | Cost or limit for the provider |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
