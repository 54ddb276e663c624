/**
 * Turns what a host sees of a rental into numbers, as a provider would who has read the code of hidden rentals: every member
 * of the launch request, the key and its comment, all requests, and the login.
 */
import type { ObservedRental } from '../fakes/scenes/observed-market.ts';

type Features = { numbers: Map<string, number>; words: Map<string, string> };

/** Part of the training in which a word must occur to be a feature. */
const WORD_SHARE = 0.01;

export type Encoding = {
  names: readonly string[];
  rowOf(rental: ObservedRental): Float64Array;
};

/** Learns the words that occur in the training. */
export function learnEncoding(training: readonly ObservedRental[]): Encoding {
  const all = training.map(featuresOf);
  const numbers = [...new Set(all.flatMap((each) => [...each.numbers.keys()]))];
  const counts = new Map<string, number>();
  for (const word of all.flatMap(wordsOf)) counts.set(word, (counts.get(word) ?? 0) + 1);
  const least = training.length * WORD_SHARE;
  const words = [...counts].flatMap(([word, count]) => (count >= least ? [word] : []));
  return {
    names: [...numbers, ...words],
    rowOf(rental) {
      const features = featuresOf(rental);
      const present = new Set(wordsOf(features));
      return Float64Array.from([
        ...numbers.map((name) => features.numbers.get(name) ?? -1),
        ...words.map((word) => (present.has(word) ? 1 : 0)),
      ]);
    },
  };
}

const wordsOf = ({ words }: Features): string[] =>
  [...words].map(([name, word]) => `${name} = ${word}`);

function featuresOf({ spec, specBytes, requests, launchedMs, login }: ObservedRental): Features {
  const features: Features = { numbers: new Map(), words: new Map() };
  const { numbers, words } = features;
  addMembers(features, 'spec', spec);
  numbers.set('launch bytes', specBytes);
  numbers.set('requests before the login', requests.length);
  const [first] = requests;
  numbers.set('first request ms', first?.afterMs ?? -1);
  words.set('requests', requests.map(({ method, path }) => `${method} ${path}`).join(', '));
  addKey(features, spec.ssh_public_keys ?? []);
  numbers.set('login ms', login.connectedMs - launchedMs);
  numbers.set('login keys ms', login.keysMs - login.connectedMs);
  numbers.set('login authentication ms', login.loggedInMs - login.keysMs);
  numbers.set('login command ms', login.commandMs - login.loggedInMs);
  numbers.set('login bytes', login.bytes);
  numbers.set('login packets', login.packets);
  numbers.set('login attempts', login.attempts.length);
  words.set('login attempts', login.attempts.join(', '));
  words.set('SSH version', login.version);
  words.set('SSH algorithms', login.algorithms);
  words.set('SSH channel', `${login.channel} ${login.hasTerminal}`);
  words.set('SSH variables', JSON.stringify(login.variables));
  return features;
}

/** Adds each member of the spec by its path: numbers, texts with their lengths, and the lengths of lists. */
function addMembers({ numbers, words }: Features, path: string, value: unknown): void {
  if (typeof value === 'number') numbers.set(path, value);
  else if (typeof value === 'string' || typeof value === 'boolean') {
    words.set(path, String(value));
    numbers.set(`${path} length`, String(value).length);
  } else if (Array.isArray(value)) {
    numbers.set(`${path} length`, value.length);
    if (path !== 'spec.ssh_public_keys' && path !== 'spec.gpu_uuids') {
      words.set(path, JSON.stringify(value));
    }
  } else if (typeof value === 'object' && value !== null) {
    numbers.set(`${path} members`, Object.keys(value).length);
    for (const [name, each] of Object.entries(value)) {
      addMembers({ numbers, words }, `${path}.${name}`, each);
    }
  }
}

function addKey({ numbers, words }: Features, keys: readonly string[]): void {
  const [type = '', blob = '', ...rest] = keys[0]?.split(' ') ?? [];
  const comment = rest.join(' ');
  const [user = '', host = ''] = comment.split('@');
  numbers.set('key bytes', Buffer.from(blob, 'base64').length);
  numbers.set('comment length', comment.length);
  numbers.set('comment digits', comment.replaceAll(/\D/g, '').length);
  numbers.set('comment capitals', comment.replaceAll(/[^A-Z]/g, '').length);
  numbers.set('comment marks', comment.replaceAll(/[A-Za-z0-9]/g, '').length);
  words.set('key type', type);
  words.set('comment', comment);
  words.set('comment user', user);
  words.set('comment host', host);
  words.set('comment shape', comment.replaceAll(/[0-9]+/g, '0').replaceAll(/[a-z]+/g, 'a'));
}
