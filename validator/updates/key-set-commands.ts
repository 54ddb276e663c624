/**
 * `npm run validator -- key-set …`: the ceremony of the root keys. All commands except `publish` and `show` read and
 * write files only, so that they run on a machine without a network.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import type { z } from 'zod';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { createPrivateFile, fileProblem } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { HotkeyText } from '#shared/signing/hotkey.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import {
  RootKeySet,
  RootKeys,
  SignedRootKeySet,
  signersAmong,
  signRootKeySet,
  withSignatures,
} from '#shared/updates/root-key-set.ts';
import { keyringSigner, openKey, SEED_BYTES } from '../keys/key-file.ts';
import { type StoreLocation, withStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import {
  describeSigners,
  firstSet,
  nextSet,
  publishProblem,
  recoverySet,
} from './key-set.rules.ts';
import { addKeySet, publishedChain } from './key-set.store.ts';
import { newestRelease } from './release.store.ts';

export type KeySetPorts = {
  nowMs: number;
  random: Random;
  /** Location of the evidence store, for `publish` and `show` only. */
  store(): StoreLocation;
  /** Opens the validator's own key, for `publish` only. */
  ownKey(): Promise<LocalSigner>;
};

type Command = (words: readonly string[], ports: KeySetPorts) => Promise<string>;

const MAX_BYTES = 256 * 1_024;
const MAX_FILES = 32;

const COMMANDS: Readonly<Record<string, Command>> = {
  'new-root': newRoot,
  draft: async ([validator, threshold, ...roots], { nowMs }) => {
    const root = RootKeys.safeParse({ threshold: Number(threshold), keys: roots });
    if (!root.success)
      throw usage('draft', 'VALIDATOR_SS58 THRESHOLD ROOT_SS58 …', problemsOf(root.error));
    return json(checked(firstSet(hotkeyIn(validator), root.data, nowMs)));
  },
  next: async ([file, ...rest], { nowMs }) => {
    if (rest.length > 0) throw usage('next', 'FILE');
    return json(checked(nextSet(readDocument(file).key_set, nowMs)));
  },
  recover: async ([file, stolen, fresh, ...rest], { nowMs }) => {
    if (rest.length > 0) throw usage('recover', 'FILE STOLEN_SS58 NEW_SS58');
    const keys = { stolen: hotkeyIn(stolen), fresh: hotkeyIn(fresh) };
    const set = recoverySet(readDocument(file).key_set, keys, nowMs);
    if (set === null) throw new ConfigError(`${file} does not list the key ${keys.stolen}`);
    return json(checked(set));
  },
  check: async ([file, ...rest]) => {
    if (rest.length > 0) throw usage('check', 'FILE');
    return describe(readDocument(file));
  },
  sign,
  combine: async (files) => {
    if (files.length < 2 || files.length > MAX_FILES) throw usage('combine', 'FILE FILE …');
    const [first, ...others] = files.map(readDocument);
    if (first === undefined) throw usage('combine', 'FILE FILE …');
    const text = canonicalJson(first.key_set);
    const at = others.findIndex(({ key_set }) => canonicalJson(key_set) !== text);
    if (at >= 0) throw new ConfigError(`${files[at + 1]} is another key set than ${files[0]}`);
    return json(others.reduce((all, { signatures }) => withSignatures(all, signatures), first));
  },
  publish,
  show: async (words, { store }) => {
    if (words.length > 0) throw usage('show', '');
    const newest = (await withStore(store(), 'read', publishedChain)).at(-1);
    if (newest === undefined) throw new ConfigError('no key set is published');
    return json(newest);
  },
};

/** Returns the text to print. Rejects with ConfigError for an unknown command or invalid input. */
export async function runKeySetCommand(
  [name = '', ...words]: readonly string[],
  ports: KeySetPorts,
): Promise<string> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    throw new ConfigError(`key-set ${Object.keys(COMMANDS).join(', ')}; see --help`);
  }
  return command(words, ports);
}

async function newRoot(
  [file, ...rest]: readonly string[],
  { random }: KeySetPorts,
): Promise<string> {
  if (file === undefined || rest.length > 0) throw usage('new-root', 'SEED_FILE');
  if (existsSync(file)) throw new ConfigError(`${file} exists already`);
  const seed = random.bytes(SEED_BYTES);
  try {
    createPrivateFile(file, `${Buffer.from(seed).toString('hex')}\n`, random);
  } catch (cause) {
    throw new ConfigError(fileProblem(file, cause), { cause });
  }
  return `${(await keyringSigner(seed)).hotkey}\n`;
}

async function sign([file, keyFile, passphraseFile, ...rest]: readonly string[]): Promise<string> {
  if (keyFile === undefined || rest.length > 0) {
    throw usage('sign', 'FILE SEED_FILE, or FILE KEY_FILE PASSPHRASE_FILE');
  }
  const document = readDocument(file);
  const signer = await openKey(
    passphraseFile === undefined
      ? { kind: 'seed', path: keyFile }
      : { kind: 'key-file', path: keyFile, passphraseFile },
    null,
  );
  return json(withSignatures(document, [signRootKeySet(document.key_set, signer)]));
}

/** Adds the signature of the validator's own key, which introduces the first set to agents that only trust this key. */
async function publish([file, ...rest]: readonly string[], ports: KeySetPorts): Promise<string> {
  if (rest.length > 0) throw usage('publish', 'FILE');
  const document = readDocument(file);
  const signer = await ports.ownKey();
  const signed = withSignatures(document, [signRootKeySet(document.key_set, signer)]);
  const work = (store: EvidenceStore) =>
    store.transaction().execute(async (tx) => {
      const problem = publishProblem(signed, {
        nowMs: ports.nowMs,
        own: signer.hotkey,
        chain: await publishedChain(tx),
        releaseSequence: (await newestRelease(tx))?.sequence ?? null,
      });
      if (problem !== null) throw new ConfigError(`${file} is not published: ${problem}`);
      await addKeySet(tx, signed, ports.nowMs);
    });
  await withStore(ports.store(), 'write', work);
  return `published; agents receive it with their next check, within fifteen minutes\n${describe(signed)}`;
}

/** Reads a key set with or without signatures. Throws ConfigError with every problem. */
function readDocument(file: string | undefined): SignedRootKeySet {
  if (file === undefined) throw new ConfigError('the FILE of a key set is missing; see --help');
  let content: unknown;
  try {
    // Reading a pipe could block forever.
    const found = statSync(file);
    if (!found.isFile() || found.size > MAX_BYTES) {
      throw new ConfigError(`${file} is not a file of at most ${MAX_BYTES} bytes`);
    }
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(fileProblem(file, cause), { cause });
  }
  const isSigned = typeof content === 'object' && content !== null && 'key_set' in content;
  const parsed = SignedRootKeySet.safeParse(
    isSigned ? content : { key_set: content, signatures: [] },
  );
  if (parsed.success) return parsed.data;
  const problems = problemsOf(parsed.error).join('\n  ');
  throw new ConfigError(`${file} is not a key set of version 2:\n  ${problems}`);
}

/** Throws ConfigError for a draft that breaks the limits of a key set. */
function checked(set: RootKeySet): RootKeySet {
  const parsed = RootKeySet.safeParse(set);
  if (parsed.success) return parsed.data;
  throw new ConfigError(problemsOf(parsed.error).join('; '));
}

function hotkeyIn(text: string | undefined): string {
  const parsed = HotkeyText.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new ConfigError(`${text ?? 'nothing'} is not the ss58 address of a key; see --help`);
}

/** Describes the set in lines that people can compare before they sign. */
function describe(signed: SignedRootKeySet): string {
  const { key_set: set } = signed;
  const signers = signersAmong(signed, set.root.keys);
  return [
    `key set ${set.sequence}, issued ${timeText(set.issued_at)}, expires ${timeText(set.expires_at)}`,
    describeSigners(signed, set.root),
    ...set.root.keys.map(
      (ss58) => `root     ${ss58}${signers.includes(ss58) ? '  has signed' : ''}`,
    ),
    ...set.keys.map(
      (key) =>
        `key      ${key.ss58}  ${key.roles.join('+')}  ${timeText(key.not_before)} to ${timeText(key.not_after)}`,
    ),
    ...set.revoked.map((ss58) => `revoked  ${ss58}`),
    `manifests issued since ${timeText(set.manifests.since)}, from sequence ${set.manifests.min_sequence}`,
    '',
  ].join('\n');
}

function usage(command: string, takes: string, problems: readonly string[] = []): ConfigError {
  const why = problems.length === 0 ? '' : `: ${problems.join('; ')}`;
  return new ConfigError(`key-set ${command} takes ${takes || 'nothing'}${why}; see --help`);
}

function problemsOf(error: z.ZodError): string[] {
  return error.issues.map(({ path, message }) => `${path.join('.') || 'the document'}: ${message}`);
}

const timeText = (ms: number) => `${naiveUtc(ms)}Z`;

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
