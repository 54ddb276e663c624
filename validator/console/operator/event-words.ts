/** Describes events of a simulated marketplace in words. Pure. */
import type { EventList } from '../api/local-operations.ts';
import { nameOfConstraint } from '../market/constraints.ts';
import { formatCount, formatDuration, formatUsd, wordsOf } from '../parts/format.ts';
import { faultWords } from './fault-request.ts';

export type MarketEvent = EventList['events'][number];
type Details = MarketEvent['details'];
/** A sentence about an event, and further facts. */
export type EventWords = { title: string; facts: string[] };

const MICRO_PER_USD = 1_000_000;
const MINUTE_MS = 60_000;
const FAULT = 'fault-';
const AGENT = 'agent-';

const AGENT_COMMANDS: Readonly<Record<string, string>> = {
  put: 'The node receives a pod',
  delete: 'The node removes a pod',
  reboot: 'The node restarts a pod',
  stop: 'The node stops a pod',
  start: 'The node starts a pod',
};

/** Words of an event; an unknown kind keeps its name and its members. The node has a separate column. */
export function eventWords({ kind, details }: Pick<MarketEvent, 'kind' | 'details'>): EventWords {
  const known = KNOWN[kind];
  if (known !== undefined) return known(details);
  if (kind.startsWith(FAULT)) return faultBegins(kind.slice(FAULT.length), details);
  const command = AGENT_COMMANDS[kind.slice(AGENT.length)];
  if (kind.startsWith(AGENT) && command !== undefined) return { title: command, facts: [] };
  return { title: wordsOf(kind), facts: factsOf(details, Object.keys(details)) };
}

const KNOWN: Readonly<Record<string, (details: Details) => EventWords>> = {
  rented: (details) => ({
    title: `${actorOf(details)} rented a pod`,
    facts: [
      ...factsOf(details, ['gpus']),
      ...spanOf('for about', details['minutes'], MINUTE_MS),
      ...amountOf(details['price_uusd_per_hour'], 'per hour'),
    ],
  }),
  refused: (details) => ({
    title: `${actorOf(details)} found no node`,
    facts: [
      ...textOf(details['code'], wordsOf),
      ...textOf(details['constraint'], (name) => `No node met “${nameOfConstraint(name)}”`),
      ...factsOf(details, ['gpu', 'gpus']),
    ],
  }),
  ended: (details) => ({
    title: `${actorOf(details)} deleted a pod`,
    facts: textOf(details['code'], (code) => `Refused: ${wordsOf(code)}`),
  }),
  price: (details) => ({
    title: `${actorOf(details)} ${details['code'] === null ? 'changed the price' : 'could not change the price'}`,
    facts: [
      ...amountOf(details['price_uusd'], 'per GPU and hour'),
      ...textOf(details['code'], wordsOf),
    ],
  }),
  'node-added': (details) => ({
    title: `${actorOf(details)} added a node`,
    facts: [
      ...factsOf(details, ['gpus', 'gpu', 'region', 'cheat']),
      ...amountOf(details['price_uusd'], 'per GPU and hour'),
    ],
  }),
  'sign-up': (details) => ({ title: `${actorOf(details)} signed up`, facts: [] }),
  'self-renter': (details) => ({ title: `${actorOf(details)} will rent its own node`, facts: [] }),
  'self-rented': (details) => ({ title: `${actorOf(details)} rented its own node`, facts: [] }),
  repair: (details) => ({
    title: `Fault ended: ${faultWords(String(details['fault'] ?? ''))}`,
    facts: factsOf(details, ['region']),
  }),
  'faults-end': () => ({ title: 'No further faults begin', facts: [] }),
  'validator-executor-health-check': (details) => ({
    title: 'The node failed its check',
    facts: textOf(details['reason'], (codes) => codes.split(' ').map(wordsOf).join(', ')),
  }),
};

function faultBegins(kind: string, details: Details): EventWords {
  const seconds = details['by_s'];
  const facts = [
    ...factsOf(details, ['region']),
    ...spanOf('lasts', details['lasts_ms'], 1),
    ...(typeof seconds === 'number'
      ? [`${seconds < 0 ? 'back' : 'forward'} by ${formatDuration(Math.abs(seconds) * 1_000)}`]
      : []),
  ];
  return { title: `Fault: ${faultWords(kind)}`, facts };
}

function actorOf({ actor }: Details): string {
  return typeof actor === 'string' ? actor : 'Someone';
}

function textOf(value: Details[string] | undefined, words: (text: string) => string): string[] {
  return typeof value === 'string' && value !== '' ? [words(value)] : [];
}

function amountOf(value: Details[string] | undefined, per: string): string[] {
  return typeof value === 'number' ? [`${formatUsd(value / MICRO_PER_USD)} ${per}`] : [];
}

function spanOf(word: string, value: Details[string] | undefined, unitMs: number): string[] {
  return typeof value === 'number' ? [`${word} ${formatDuration(value * unitMs)}`] : [];
}

/** Members with their names; those of nodes and pods have their own columns. */
function factsOf(details: Details, names: readonly string[]): string[] {
  return names
    .filter((name) => name !== 'executor' && name !== 'pod')
    .flatMap((name) => {
      const value = details[name];
      if (value === null || value === undefined) return [];
      if (name === 'gpus' && typeof value === 'number') return [formatCount(value, 'GPU')];
      return [`${name === 'gpu' ? 'GPU type' : wordsOf(name)}: ${value}`];
    });
}
