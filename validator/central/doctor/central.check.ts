/** Checks of what the central API depends on: variables, database, key, secret, gateway, its own listener, disk. */
import { fail, type Outcome, ok, unlessTimedOut, warn } from '#shared/check/check.ts';
import { DISK_REQUIRED, type DiskUse, judgeDisk } from '#shared/check/disk.check.ts';
import type { DoctorCheck } from '#shared/check/doctor.ts';
import type { Observed } from '#shared/check/observe.ts';
import { hostAndPort } from '#shared/http/listen.ts';
import { judgeDatabase } from '../../database/database.check.ts';
import { centralSecretFile, centralSeedFile } from '../config.ts';
import { databaseBackupsOf } from '../platform/central-home.ts';
import { type CentralFacts, databaseLocation } from './central-facts.ts';

export const CENTRAL_SERVICE_CHECKS: readonly DoctorCheck<CentralFacts>[] = [
  {
    id: 'database',
    detects: 'a database that cannot be opened',
    required: 'the database of CENTRAL_DATABASE, with the schema of this version',
    judge: database,
  },
  {
    id: 'database-file',
    detects: 'a database that is damaged, was deleted or has no recent backup',
    required: 'an undamaged database, and a backup from within the configured interval',
    judge: databaseFile,
  },
  {
    id: 'key',
    detects: 'a key that cannot be read or that other users can read',
    required: 'a key that can sign and that only its owner can read',
    judge: key,
  },
  {
    id: 'secret',
    detects: 'a secret that is missing, incomplete or readable by other users',
    required:
      'the file of CENTRAL_SECRET_FILE has at least 32 bytes, and only its owner can read it',
    judge: secret,
  },
  {
    id: 'gateway',
    detects: 'a gateway that is unreachable, or belongs to another validator',
    required: 'the validator of CENTRAL_GATEWAY_HOTKEY answers at CENTRAL_GATEWAY_URL',
    judge: gateway,
  },
  {
    id: 'listener',
    detects: 'a central API that does not run, or another program at its port',
    required: 'this central API answers at CENTRAL_PORT',
    judge: listener,
  },
];

export const CENTRAL_DISK_CHECKS: readonly DoctorCheck<Observed<DiskUse>>[] = [
  {
    id: 'home-disk',
    detects: 'a full disk below CENTRAL_HOME',
    required: DISK_REQUIRED,
    judge: (disk) =>
      judgeDisk(disk, { minFreeGib: 0, remedy: 'du -xsh /var/* | sort -h; or move CENTRAL_HOME' }),
  },
];

function database(facts: CentralFacts): Outcome {
  const { database: observed } = facts;
  if ('problem' in observed) {
    const remedy =
      'check that the server of CENTRAL_DATABASE runs and accepts this user; restore a database file';
    return unlessTimedOut(observed, fail(observed.problem, remedy));
  }
  // A file that is absent never existed or was deleted.
  if (observed.value === null) return databaseFile(facts);
  const rows = observed.value.reduce((sum, table) => sum + table.rows, 0);
  return ok(`${observed.value.length} tables, ${rows} rows`);
}

function databaseFile({ databaseFile: observed, config }: CentralFacts): Outcome {
  return judgeDatabase(observed, databaseLocation(config), databaseBackupsOf(config));
}

function key({ key: observed, config }: CentralFacts): Outcome {
  const path = centralSeedFile(config);
  if ('problem' in observed) {
    const remedy =
      'run the doctor as the central API’s user; only the owner may read it: chmod 600';
    return unlessTimedOut(observed, fail(observed.problem, remedy));
  }
  return ok(observed.value ?? `${path} does not exist yet: the central API creates it`);
}

function secret({ secret: observed, config, database: present }: CentralFacts): Outcome {
  const path = centralSecretFile(config);
  if ('problem' in observed) {
    const remedy = 'run the doctor as the central API’s user; restore the original file, mode 0600';
    return unlessTimedOut(observed, fail(observed.problem, remedy));
  }
  if (observed.value !== null) return ok(`${path}, ${observed.value} bytes`);
  if ('value' in present && present.value === null) {
    return ok(`${path} does not exist yet: the central API creates it`);
  }
  return fail(
    `${path} is missing, but the database exists`,
    'restore the original file: another secret cannot open what the database has sealed',
  );
}

function gateway({ gateway: observed, config }: CentralFacts): Outcome {
  const { CENTRAL_GATEWAY_URL: url, CENTRAL_GATEWAY_HOTKEY: expected } = config;
  if ('problem' in observed) {
    const remedy = 'start the validator; correct scheme, port or pin: CENTRAL_GATEWAY_URL, _PIN';
    return unlessTimedOut(observed, fail(`${url}: ${observed.problem}`, remedy));
  }
  if (observed.value === expected) return ok(`${url} answers as CENTRAL_GATEWAY_HOTKEY`);
  return fail(
    `${url} answers as ${observed.value}, CENTRAL_GATEWAY_HOTKEY is ${expected}: it rejects our commands`,
    `set CENTRAL_GATEWAY_HOTKEY=${observed.value}, if that validator runs the gateway`,
  );
}

function listener({ listener: observed, key: own, config }: CentralFacts): Outcome {
  const place = hostAndPort(config.CENTRAL_HOST, config.CENTRAL_PORT);
  if ('problem' in observed) {
    const remedy = 'npm run central, with the same variables; or find what uses the port: ss -ltnp';
    const absent = warn(`no central API answers at ${place}: ${observed.problem}`, remedy);
    return unlessTimedOut(observed, absent);
  }
  if ('value' in own && own.value !== observed.value) {
    const remedy =
      'choose another CENTRAL_PORT, or run the doctor with that central API’s variables';
    return fail(`another central API answers at ${place}: ${observed.value}`, remedy);
  }
  return ok(`answers at ${place} as ${observed.value}`);
}
