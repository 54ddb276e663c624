/** Checks of what the validator depends on: key, evidence store, policies, central API, gateway, registry. */
import {
  fail,
  type Outcome,
  ok,
  unknown,
  unlessTimedOut,
  unread,
  warn,
} from '#shared/check/check.ts';
import { configurationChecks } from '#shared/check/configuration.check.ts';
import { DISK_REQUIRED, type DiskUse, judgeDisk } from '#shared/check/disk.check.ts';
import type { DoctorCheck } from '#shared/check/doctor.ts';
import type { Observed } from '#shared/check/observe.ts';
import { hostAndPort } from '#shared/http/listen.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { REJECTED_REMEDY } from '../central-client.ts';
import { storeBackups } from '../config.ts';
import { judgeDatabase } from '../database/database.check.ts';
import { nextExpiry } from '../updates/key-set.rules.ts';
import { storeLocation, type ValidatorFacts } from './validator-facts.ts';

const OTHERS = 0o077;

export const CONFIGURATION_CHECKS = configurationChecks('VALIDATOR_');

export const VALIDATOR_SERVICE_CHECKS: readonly DoctorCheck<ValidatorFacts>[] = [
  {
    id: 'key',
    detects: 'a key that is missing or that other users can read',
    required: 'a key that can sign and that only its owner can read',
    judge: key,
  },
  {
    id: 'state-folder',
    detects: 'a home that other users can read or the validator cannot write',
    required: 'VALIDATOR_HOME is writable and has mode 0700',
    judge: home,
  },
  {
    id: 'ledger',
    detects: 'an evidence store that cannot be opened',
    required: 'the database of VALIDATOR_DATABASE, with a schema that this version can read',
    judge: evidenceStore,
  },
  {
    id: 'ledger-file',
    detects: 'an evidence store that is damaged, was deleted or has no recent backup',
    required: 'an undamaged store, and a backup from within the configured interval',
    judge: storeFile,
  },
  {
    id: 'key-set',
    detects: 'a key set that expires soon or does not list the validator’s key',
    required: 'a published key set that lists the validator’s key for another 30 days, or none',
    judge: keySet,
  },
  {
    id: 'policies',
    detects: 'policy files that prevent the validator’s start',
    required: 'valid policies for weights and checks',
    judge({ policies }) {
      if ('value' in policies) return ok(policies.value);
      const remedy = 'correct the file: the validator does not start with it';
      return unlessTimedOut(policies, fail(policies.problem, remedy));
    },
  },
  {
    id: 'metagraph',
    detects: 'a validator that computes no weights',
    required: 'a metagraph file that can be read and lists the recipient of burned weight',
    judge({ metagraph, config }) {
      if (metagraph === null) {
        return warn('no metagraph file is set: no weights are computed', 'set VALIDATOR_METAGRAPH');
      }
      if ('value' in metagraph) {
        const { registered, missing } = metagraph.value;
        if (missing === null) return ok(`${registered} registered`);
        return fail(
          `${missing} (burn_hotkey of the weight policy) is not among the ${registered} registered hotkeys: no weights are posted`,
          `add ${missing} to ${config.VALIDATOR_METAGRAPH}, or set burn_hotkey of the weight policy to a registered hotkey`,
        );
      }
      const remedy = 'correct the file: no weights are computed without it';
      return unlessTimedOut(metagraph, fail(metagraph.problem, remedy));
    },
  },
  {
    id: 'probe-accounts',
    detects: 'a validator that rents no node as a customer does',
    required: 'a private file with the accounts of hidden rentals',
    judge({ probeAccounts }) {
      if (probeAccounts === null) {
        const measured = 'no file is named: no hidden rentals';
        return warn(
          measured,
          'set VALIDATOR_PROBE_ACCOUNTS_FILE, see "Make hidden rentals" in validator/README.md',
        );
      }
      if ('value' in probeAccounts)
        return ok(`${probeAccounts.value} ${probeAccounts.value === 1 ? 'account' : 'accounts'}`);
      const remedy = 'correct the file, and run chmod 600: no hidden rentals are made without it';
      return unlessTimedOut(probeAccounts, fail(probeAccounts.problem, remedy));
    },
  },
  {
    id: 'ssh-client',
    detects: 'a host without the client with which hidden rentals log in',
    required: 'the OpenSSH client, if there are accounts of hidden rentals',
    judge({ sshClient }) {
      if (sshClient === null) return ok('not needed: no hidden rentals are made');
      if ('value' in sshClient) return ok(sshClient.value);
      const remedy =
        'install the package openssh-client: hidden rentals are not measured without it';
      return unlessTimedOut(sshClient, fail(sshClient.problem, remedy));
    },
  },
  {
    id: 'central',
    detects: 'a central API that is unreachable or rejects our signature',
    required: 'the central API lists the executors to check',
    judge: central,
  },
  {
    id: 'central-hotkey',
    detects: 'a central API whose commands the validator would reject',
    required: 'the central API signs with VALIDATOR_CENTRAL_HOTKEY',
    judge: centralHotkey,
  },
  {
    id: 'gateway',
    detects: 'a gateway that does not run, or another validator at its port',
    required: 'this validator answers at VALIDATOR_PORT',
    judge: gateway,
  },
  {
    id: 'registry',
    detects: 'an agent image whose digest cannot be read',
    required: 'the registry returns the digest of VALIDATOR_AGENT_IMAGE',
    judge: registry,
  },
];

export const VALIDATOR_DISK_CHECKS: readonly DoctorCheck<Observed<DiskUse>>[] = [
  {
    id: 'home-disk',
    detects: 'a full disk below VALIDATOR_HOME',
    required: DISK_REQUIRED,
    judge: (disk) =>
      judgeDisk(disk, {
        minFreeGib: 0,
        remedy: 'du -xsh /var/* | sort -h; or move VALIDATOR_HOME',
      }),
  },
];

function key({ key: observed, config }: ValidatorFacts): Outcome {
  if ('value' in observed) return ok(`${observed.value} can sign`);
  const isMissing =
    observed.problem.startsWith('there is no file') && config.VALIDATOR_KEY_FILE === undefined;
  if (!isMissing) {
    const remedy = 'only the owner may read the file: chmod 600; see encrypt-key in --help';
    return unlessTimedOut(observed, fail(observed.problem, remedy));
  }
  const remedy =
    'name the key that is registered in the subnet: VALIDATOR_SEED_FILE or VALIDATOR_KEY_FILE';
  return warn(`no key yet, the first start creates one: ${observed.problem}`, remedy);
}

function home({ home: observed, config: { VALIDATOR_HOME: path } }: ValidatorFacts): Outcome {
  const remedy = 'run the doctor as the validator’s user';
  if ('problem' in observed) {
    return unread(observed, `${path} cannot be read: ${observed.problem}`, remedy);
  }
  if (observed.value === null) return ok(`${path} does not exist yet: the validator creates it`);
  const { mode, writable } = observed.value;
  const measured = `${path}, mode 0${mode.toString(8)}`;
  if (!writable) return fail(`${measured}: not writable by this user`, `chown it, or ${remedy}`);
  if ((mode & OTHERS) !== 0) {
    return warn(`${measured}: other users can read it`, `chmod 0700 ${path}`);
  }
  return ok(measured);
}

function storeFile({ storeFile: observed, config }: ValidatorFacts): Outcome {
  return judgeDatabase(observed, storeLocation(config), storeBackups(config));
}

function evidenceStore(facts: ValidatorFacts): Outcome {
  const { ledger: observed } = facts;
  if ('problem' in observed) {
    const remedy =
      'check that the server of VALIDATOR_DATABASE runs and accepts this user; restore a database file';
    return unlessTimedOut(observed, fail(observed.problem, remedy));
  }
  // A file that is absent never existed or was deleted.
  if (observed.value === null) return storeFile(facts);
  const { schema, known, tables } = observed.value;
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const measured = `schema ${schema} of ${known}, ${rows} rows`;
  if (schema <= known) return ok(measured);
  return fail(`${measured}: a newer version wrote it`, 'install that version again');
}

function keySet({ keySet: observed, key: own, config, nowMs }: ValidatorFacts): Outcome {
  if ('problem' in observed) {
    const remedy = 'check the evidence store: see the line `ledger`';
    return unread(observed, `the published key set cannot be read: ${observed.problem}`, remedy);
  }
  const set = observed.value;
  const remedy = 'publish the next one: key-set in npm run validator -- --help';
  if (set === null) {
    const measured = 'no key set is published: agents trust the keys of their configuration';
    if (config.VALIDATOR_AGENT_IMAGE === undefined) return ok(measured);
    return warn(`${measured}, so a stolen key has to be replaced on each host`, remedy);
  }
  if ('problem' in own) return unknown(`key set ${set.sequence} was not compared: no key`);
  const { what, atMs, isUrgent, isOver } = nextExpiry(set, own.value, nowMs);
  if (isOver) return fail(`${what} is not valid: agents refuse updates and commands`, remedy);
  const measured = `${what} expires ${naiveUtc(atMs)}Z`;
  return isUrgent ? warn(measured, remedy) : ok(measured);
}

function central({ central: observed, config }: ValidatorFacts): Outcome {
  const url = config.VALIDATOR_CENTRAL_URL;
  if (observed === null) return unknown(`${url} was not queried: there is no key to sign with`);
  if ('value' in observed) {
    return ok(`${url} accepts our signature and lists ${observed.value} executors`);
  }
  if (/status 40[13]\b/.test(observed.problem)) {
    return fail(`${url} rejects our signature: ${observed.problem}`, REJECTED_REMEDY);
  }
  const remedy = `check the address with curl -sS ${url}/openapi.json; VALIDATOR_CENTRAL_URL must end in /api`;
  return unlessTimedOut(observed, fail(`${url}: ${observed.problem}`, remedy));
}

function centralHotkey({ centralHotkey: observed, config }: ValidatorFacts): Outcome {
  const { VALIDATOR_CENTRAL_URL: url, VALIDATOR_CENTRAL_HOTKEY: expected } = config;
  if ('problem' in observed) {
    const remedy = `curl -sS ${url}/version: its hotkey has to be ${expected}`;
    const measured = `${url} does not report the key it signs with: ${observed.problem}`;
    return unread(observed, measured, remedy);
  }
  if (observed.value === expected) return ok(`${url} signs with VALIDATOR_CENTRAL_HOTKEY`);
  return fail(
    `${url} signs with ${observed.value}, VALIDATOR_CENTRAL_HOTKEY is ${expected}: its commands are rejected`,
    `set VALIDATOR_CENTRAL_HOTKEY=${observed.value}, if this validator belongs to that central API`,
  );
}

function gateway({ gateway: observed, key: own, config }: ValidatorFacts): Outcome {
  const place = hostAndPort(config.VALIDATOR_HOST, config.VALIDATOR_PORT);
  if ('problem' in observed) {
    const remedy =
      'npm run validator, with the same variables; or find what uses the port: ss -ltnp';
    const absent = warn(`no validator answers at ${place}: ${observed.problem}`, remedy);
    return unlessTimedOut(observed, absent);
  }
  if ('value' in own && own.value !== observed.value) {
    const remedy =
      'choose another VALIDATOR_PORT, or run the doctor with that validator’s variables';
    return fail(`another validator answers at ${place}: ${observed.value}`, remedy);
  }
  return ok(`answers at ${place} as ${observed.value}`);
}

function registry({ registry: observed, config }: ValidatorFacts): Outcome {
  const image = `${config.VALIDATOR_AGENT_IMAGE}:${config.VALIDATOR_AGENT_TAG}`;
  if (observed === null) return ok('VALIDATOR_AGENT_IMAGE is not set: no image is signed');
  if ('value' in observed) return ok(`${image} is ${observed.value}`);
  const remedy =
    'make the image readable, publicly or with the login in VALIDATOR_AGENT_LOGIN_FILE';
  return unlessTimedOut(observed, fail(`${image}: ${observed.problem}`, remedy));
}
