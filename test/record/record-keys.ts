/**
 * Makes SSH keys as renters do, with the real ssh-keygen, and records type, size and comment. Each key is made under a user
 * and a computer's name of common installations, in namespaces of this computer (needs root).
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Random } from '#shared/runtime/random.ts';
import type { OrdinaryRentals } from '../fixtures/ordinary-rentals.ts';

type Key = OrdinaryRentals['keys'][number];
type Desk = { user: string; host: string };

const run = promisify(execFile);
const NAMES = ['alice', 'ben', 'chen', 'dana', 'emil', 'fatima', 'george', 'hana', 'ivan', 'julia'];
const HEX = '0123456789abcdef';
const CAPITALS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const BYTE = 256;

/** Options of ssh-keygen with their weight. Without a type, the present version chooses. */
const FORMS: readonly { weight: number; options(desk: Desk): string[] }[] = [
  { weight: 3, options: () => [] },
  { weight: 8, options: () => ['-t', 'ed25519'] },
  { weight: 1, options: () => ['-t', 'rsa', '-b', '4096'] },
  { weight: 1, options: () => ['-t', 'ecdsa'] },
  { weight: 3, options: ({ user }) => ['-t', 'ed25519', '-C', `${user}@example.com`] },
];

/** Users and names of common installations. */
function deskOf(random: Random): Desk {
  const chars = (count: number, from: string) =>
    Array.from({ length: count }, () => from[random.int(from.length)]).join('');
  const name = NAMES[random.int(NAMES.length)] ?? 'alice';
  const owner = `${name[0]?.toUpperCase()}${name.slice(1)}`;
  const desks: Desk[] = [
    // Default name of a container.
    { user: 'root', host: chars(12, HEX) },
    { user: 'root', host: chars(12, HEX) },
    { user: 'ubuntu', host: `ip-172-31-${random.int(BYTE)}-${random.int(BYTE)}` },
    { user: name, host: `DESKTOP-${chars(7, CAPITALS)}` },
    { user: name, host: `${owner}s-MacBook-Pro.local` },
    { user: name, host: 'ubuntu' },
    { user: name, host: 'laptop' },
    { user: 'root', host: 'localhost' },
    { user: 'debian', host: 'debian' },
    { user: 'root', host: hostname() },
  ];
  return desks[random.int(desks.length)] ?? { user: name, host: 'laptop' };
}

function formOf(random: Random) {
  let rest = random.int(FORMS.reduce((sum, { weight }) => sum + weight, 0));
  for (const form of FORMS) {
    if (rest < form.weight) return form;
    rest -= form.weight;
  }
  throw new Error('there is no form');
}

export async function recordKeys(random: Random, count: number): Promise<Key[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-keys-'));
  const keys: Key[] = [];
  try {
    for (let at = 0; at < count; at += 1) keys.push(await recordKey(random, join(folder, `${at}`)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return keys;
}

async function recordKey(random: Random, file: string): Promise<Key> {
  const desk = deskOf(random);
  const { user, host } = desk;
  // ssh-keygen reads the user's name from this file, in its own mount namespace.
  writeFileSync(`${file}.passwd`, `${user}:x:0:0::/:/bin/sh\n`);
  const script = 'mount --bind "$1" /etc/passwd && hostname "$2" && shift 2 && exec "$@"';
  const words = ['ssh-keygen', '-q', '-N', '', '-f', file, ...formOf(random).options(desk)];
  await run('unshare', [
    '--uts',
    '--mount',
    'sh',
    '-c',
    script,
    'sh',
    `${file}.passwd`,
    host,
    ...words,
  ]);
  const line = readFileSync(`${file}.pub`, 'utf8').trim();
  const { stdout } = await run('ssh-keygen', ['-l', '-f', `${file}.pub`]);
  const [algorithm = ''] = line.split(' ');
  return {
    type: algorithm.includes('ecdsa') ? 'ecdsa' : algorithm === 'ssh-rsa' ? 'rsa' : 'ed25519',
    bits: Number(stdout.split(' ', 1)[0]),
    comment: line.split(' ').slice(2).join(' '),
  };
}
