/** Judges what the validator works with. Pure. */
import { clockFindings } from '#shared/check/clock.findings.ts';
import { diskFinding } from '#shared/check/disk-use.ts';
import { type Finding, fail, ok, unknown, warn } from '#shared/check/finding.ts';
import { placeOf } from '#shared/http/listen.ts';
import type { ConfigurationFacts, ValidatorFacts } from './facts.ts';

const OTHERS = 0o077;

export function configurationFinding({ problems, unknown: strange }: ConfigurationFacts): Finding {
  const id = 'configuration';
  const remedy = 'correct them; the README names all variables';
  if (problems.length > 0) return fail(id, [...problems, ...strange].join('; '), remedy);
  if (strange.length > 0) return warn(id, strange.join('; '), remedy);
  return ok(id, 'every VALIDATOR_* variable is understood');
}

/** Always the same, in the same order. */
export function validatorFindings(facts: ValidatorFacts): Finding[] {
  return [
    key(facts),
    home(facts),
    ledger(facts),
    policies(facts),
    metagraph(facts),
    central(facts),
    centralHotkey(facts),
    gateway(facts),
    registry(facts),
    ...clockFindings(facts.time),
    diskFinding('home-disk', facts.disk, 'du -xsh /var/* | sort -h; or move VALIDATOR_HOME'),
  ];
}

function key({ key: told, config }: ValidatorFacts): Finding {
  if ('value' in told) return ok('key', `${told.value} can sign`);
  const isMissing =
    told.problem.startsWith('there is no file') && config.VALIDATOR_KEY_FILE === undefined;
  if (!isMissing)
    return fail(
      'key',
      told.problem,
      'the owner alone may read it: chmod 600; see encrypt-key in --help',
    );
  const remedy = 'name the key that the subnet knows: VALIDATOR_SEED_FILE or VALIDATOR_KEY_FILE';
  return warn('key', `there is none yet, the first start makes one: ${told.problem}`, remedy);
}

function home({ home: told, config }: ValidatorFacts): Finding {
  const id = 'state-folder';
  const path = config.VALIDATOR_HOME;
  if ('problem' in told)
    return unknown(
      id,
      `${path} cannot be seen: ${told.problem}`,
      'run the doctor as the validator’s user',
    );
  if (told.value === null) return ok(id, `${path} is not there yet: the validator makes it`);
  const { mode, writable } = told.value;
  const what = `${path}, mode 0${mode.toString(8)}`;
  if (!writable)
    return fail(
      id,
      `${what}: not writable by this user`,
      `chown it, or run the doctor as the validator’s user`,
    );
  if ((mode & OTHERS) !== 0) return warn(id, `${what}: open to other users`, `chmod 0700 ${path}`);
  return ok(id, what);
}

function ledger({ ledger: told }: ValidatorFacts): Finding {
  const id = 'ledger';
  if ('problem' in told)
    return fail(
      id,
      told.problem,
      'see that the server of VALIDATOR_DATABASE runs and lets this user in; of a file, restore it',
    );
  if (told.value === null) return ok(id, 'is not there yet: the validator makes it');
  const { schema, known, tables } = told.value;
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const what = `schema ${schema} of ${known}, ${rows} rows`;
  if (schema > known)
    return fail(id, `${what}: a newer version wrote it`, 'install that version again');
  return ok(id, what);
}

function policies({ policies: told }: ValidatorFacts): Finding {
  if ('value' in told) return ok('policies', told.value);
  return fail('policies', told.problem, 'correct the file: the validator does not start with it');
}

function metagraph({ metagraph: told }: ValidatorFacts): Finding {
  const id = 'metagraph';
  if (told === null)
    return warn(id, 'none is named: no weights are computed', 'set VALIDATOR_METAGRAPH');
  if ('value' in told) return ok(id, `${told.value} registered`);
  return fail(id, told.problem, 'correct the file: no weights are computed without it');
}

function central({ central: told, config }: ValidatorFacts): Finding {
  const id = 'central';
  const url = config.VALIDATOR_CENTRAL_URL;
  if (told === null) return unknown(id, `${url} was not asked: there is no key to sign with`);
  if ('value' in told)
    return ok(id, `${url} takes our signature and lists ${told.value} executors`);
  if (/status 40[13]\b/.test(told.problem)) {
    const remedy =
      'have the ss58 of this validator put into CENTRAL_VALIDATORS there; check the clocks of both';
    return fail(id, `${url} refuses our signature: ${told.problem}`, remedy);
  }
  const remedy = `curl -sS ${url}/openapi.json; VALIDATOR_CENTRAL_URL ends in /api`;
  return fail(id, `${url}: ${told.problem}`, remedy);
}

function centralHotkey({ centralHotkey: told, config }: ValidatorFacts): Finding {
  const id = 'central-hotkey';
  const { VALIDATOR_CENTRAL_URL: url, VALIDATOR_CENTRAL_HOTKEY: expected } = config;
  if ('problem' in told) {
    const remedy = `curl -sS ${url}/version: its hotkey has to be ${expected}`;
    return unknown(id, `${url} does not say which key it commands with: ${told.problem}`, remedy);
  }
  if (told.value === expected)
    return ok(id, `${url} commands with the key of VALIDATOR_CENTRAL_HOTKEY`);
  return fail(
    id,
    `${url} commands with ${told.value}, VALIDATOR_CENTRAL_HOTKEY is ${expected}: its commands are refused`,
    `set VALIDATOR_CENTRAL_HOTKEY=${told.value}, if that is the central API that this validator is to serve`,
  );
}

function gateway({ gateway: told, key: own, config }: ValidatorFacts): Finding {
  const id = 'gateway';
  const place = placeOf(config.VALIDATOR_HOST, config.VALIDATOR_PORT);
  if ('problem' in told) {
    const remedy =
      'npm run validator, with the same variables; else see who has the port: ss -ltnp';
    return warn(id, `nobody of ours answers at ${place}: ${told.problem}`, remedy);
  }
  if ('value' in own && own.value !== told.value) {
    const remedy =
      'choose another VALIDATOR_PORT, or give the doctor the variables of that validator';
    return fail(id, `another validator answers at ${place}: ${told.value}`, remedy);
  }
  return ok(id, `answers at ${place} as ${told.value}`);
}

function registry({ registry: told, config }: ValidatorFacts): Finding {
  const id = 'registry';
  const image = `${config.VALIDATOR_AGENT_IMAGE}:${config.VALIDATOR_AGENT_TAG}`;
  if (told === null) return ok(id, 'no image of the agent is signed for');
  if ('value' in told) return ok(id, `${image} is ${told.value}`);
  return fail(
    id,
    `${image}: ${told.problem}`,
    'it has to be readable at that name, with the login in VALIDATOR_AGENT_LOGIN_FILE or without one',
  );
}
