/** The command `agent enrol`: prints a request, signs it on the computer with the hotkey, and accepts the enrolment. */
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import {
  ENROLMENT_DAYS,
  Enrolment,
  EnrolmentRequest,
  enrolmentExpiry,
  enrolmentText,
  isEnrolmentSigned,
  MAX_ENROLMENT_DAYS,
  parsePastedLine,
  readEnrolment,
  signEnrolment,
  writeEnrolment,
} from '#shared/api/agent/identity.ts';
import { readArguments } from '#shared/runtime/arguments.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { readPrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { openIdentity } from '#shared/signing/identity.ts';
import { createSigner } from '#shared/signing/sr25519.ts';

export const ENROL_HELP = `Usage: npm run agent -- enrol [request | sign | accept | show]

Validators trust an agent if its provider's hotkey has signed the agent's key. The hotkey stays off this host:

  enrol request [--days N]                 on the host: print the request to sign (${ENROLMENT_DAYS} days)
  enrol sign --seed-file FILE REQUEST      where the hotkey is: print the enrolment; FILE has the hotkey's
                                           seed as 64 hex digits, mode 0600
  enrol sign --text REQUEST                print the text, to sign it with another wallet
  enrol accept [--replace] ENROLMENT       on the host: store it; a running agent then presents it;
                                           --replace also replaces an enrolment by another hotkey
  enrol show                               on the host: print the agent's key and its enrolment

REQUEST and ENROLMENT are one line of JSON each; an enrolment is the request with "hotkey" and "signature"
("0x" and 128 hex digits over the text). Of two enrolments of one executor, validators trust the one that
expires later, so a replaced key cannot return. request, accept and show read the agent's environment variables.
`;

export type EnrolPorts = {
  clock: Clock;
  random: Random;
  /** Home and executor of the agent on this host. Called only by commands that need them. */
  host(): { home: string; executorId: string };
};

/** Wrong usage or an invalid enrolment. The message is printed to the user. */
export class EnrolError extends Error {
  override name = 'EnrolError';
}

/** Returns the text to print. Throws EnrolError. */
export function runEnrol(args: readonly string[], ports: EnrolPorts): string {
  const { values: options, words: all, problems } = readArguments(args, OPTIONS);
  if (options.help === true) return ENROL_HELP;
  if (problems.length > 0) throw new EnrolError(`${problems.join('\n')}\n${ENROL_HELP}`);
  const [command, ...words] = all;
  switch (command) {
    case 'request':
      return line(request(ports, options.days));
    case 'sign': {
      const unsigned = read(EnrolmentRequest, words, 'request');
      if (options.text === true) return `${enrolmentText(unsigned)}\n`;
      return line(signEnrolment(unsigned, createSigner(seedIn(options['seed-file']))));
    }
    case 'accept':
      return accept(read(Enrolment, words, 'enrolment'), ports, options.replace === true);
    case 'show':
      return show(ports);
    default:
      throw new EnrolError(ENROL_HELP);
  }
}

const OPTIONS = {
  days: { type: 'string' },
  'seed-file': { type: 'string' },
  text: { type: 'boolean' },
  replace: { type: 'boolean' },
  help: { type: 'boolean' },
} as const;

function request({ clock, random, host }: EnrolPorts, days = String(ENROLMENT_DAYS)) {
  const { home, executorId } = host();
  const count = /^\d{1,4}$/.test(days) ? Number(days) : 0;
  if (count < 1 || count > MAX_ENROLMENT_DAYS) {
    throw new EnrolError(`--days ${days}: must be 1 to ${MAX_ENROLMENT_DAYS}`);
  }
  const { publicKey } = openIdentity(home, random);
  const expires_ms = enrolmentExpiry(count, clock.now());
  return { executor_id: executorId, public_key: publicKey, expires_ms };
}

function accept(
  enrolment: Enrolment,
  { clock, random, host }: EnrolPorts,
  mayReplace: boolean,
): string {
  const { home, executorId } = host();
  const { publicKey } = openIdentity(home, random);
  if (enrolment.executor_id !== executorId)
    throw new EnrolError('the enrolment is for another executor');
  if (enrolment.public_key !== publicKey) throw new EnrolError('the enrolment is for another key');
  if (!isEnrolmentSigned(enrolment))
    throw new EnrolError(`the enrolment is not signed by ${enrolment.hotkey}`);
  if (enrolment.expires_ms <= clock.now()) throw new EnrolError('the enrolment has expired');
  const present = readEnrolment(home);
  const isOurs = present?.public_key === publicKey && present.executor_id === executorId;
  if (isOurs && present.hotkey !== enrolment.hotkey && !mayReplace) {
    const change = `this agent is enrolled by ${present.hotkey}, not by ${enrolment.hotkey}`;
    throw new EnrolError(`${change}; to replace the enrolment, repeat the command with --replace`);
  }
  writeEnrolment(home, enrolment, random);
  return `enrolled by ${enrolment.hotkey}\n`;
}

function show({ clock, random, host }: EnrolPorts): string {
  const { home, executorId } = host();
  const { publicKey } = openIdentity(home, random);
  const enrolment = readEnrolment(home);
  const isOurs = enrolment?.public_key === publicKey && enrolment.executor_id === executorId;
  const days = isOurs ? Math.floor((enrolment.expires_ms - clock.now()) / DAY_MS) : 0;
  const enrolled = isOurs
    ? `enrolled by ${enrolment.hotkey}, for ${days} more days`
    : 'not enrolled';
  return `key ${publicKey}\n${enrolled}\n`;
}

const DAY_MS = 86_400_000;

function read<T>(schema: z.ZodType<T>, words: readonly string[], what: string): T {
  try {
    return parsePastedLine(schema, words.join(' '), what);
  } catch (error) {
    throw new EnrolError(messageOf(error));
  }
}

function seedIn(path: string | undefined): Uint8Array {
  if (path === undefined) throw new EnrolError('sign needs --seed-file FILE or --text');
  try {
    const text = Buffer.from(readPrivateFile(path) ?? readFileSync(path)).toString('utf8');
    const hex = /^(?:0x)?([0-9a-f]{64})\s*$/i.exec(text)?.[1];
    if (hex === undefined) throw new Error('not 64 hex digits');
    return new Uint8Array(Buffer.from(hex, 'hex'));
  } catch (error) {
    throw new EnrolError(`--seed-file ${path}: ${messageOf(error)}`);
  }
}

function line(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
