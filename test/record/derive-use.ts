/** Derives the content of `validator/probes/ordinary-use.json` from recorded rentals. Pure. */
import type { OrdinaryUse } from '../../validator/probes/ordinary-use.ts';
import { isCopied, type OrdinaryRentals } from '../fixtures/ordinary-rentals.ts';

export type DerivedUse = Pick<OrdinaryUse, 'requests' | 'pod_names' | 'users' | 'keys' | 'courses'>;

/** Names without those that test the limits of a name. */
const NAME = /^[\w -]{1,30}$/;

/** Parts of a comment that ssh-keygen takes from a computer's name, and that differ from computer to computer. */
const PARTS: readonly [RegExp, string][] = [
  [/(?<=@)[0-9a-f]{12}$/, '{hex}'],
  [/(?<=@DESKTOP-)[0-9A-Z]{7}$/, '{id}'],
  [/(?<=@ip-172-31-)\d{1,3}-\d{1,3}$/, '{byte}-{byte}'],
];

export function deriveUse({ requests, keys, courses }: OrdinaryRentals): DerivedUse {
  const copied = requests.filter(isCopied);
  return {
    requests: counted(
      copied.map(({ template, ...request }) => ({
        template: template ?? 0,
        ...present('gpu_count', request.gpu_count),
        ...present('initial_port_count', request.initial_port_count),
        ...present('termination_hours', request.termination_hours),
        ...present('max_spend_usd', request.max_spend_usd),
        ...present('idle_shutdown_minutes', request.idle_shutdown_minutes),
        ...(request.enable_jupyter ? { enable_jupyter: true as const } : {}),
      })),
    ),
    pod_names: [...new Set(copied.map(({ pod_name: name }) => name))].filter((name) =>
      NAME.test(name),
    ),
    ...keysIn(keys),
    courses: counted(
      courses.map(({ poll_ms, login_after_ms, locale }) => ({ poll_ms, login_after_ms, locale })),
    ),
  };
}

function present<Name extends string>(name: Name, value: number | null) {
  return (value === null ? {} : { [name]: value }) as { [name in Name]?: number };
}

/** Owner of a desktop or notebook in a comment. */
const OWNER = /^(\w+)@(?:DESKTOP-|\w+s-MacBook)/;

/** Owners are drawn separately, because a host would otherwise find the few combinations that were recorded. */
function keysIn(keys: OrdinaryRentals['keys']): Pick<DerivedUse, 'users' | 'keys'> {
  const owners = keys.flatMap(({ comment }) => OWNER.exec(comment)?.[1] ?? []);
  const users = [...new Set(owners)].toSorted();
  const patterns = keys.map((key) => ({ ...key, comment: patternOf(key.comment, users) }));
  return { users, keys: counted(patterns) };
}

function patternOf(comment: string, users: readonly string[]): string {
  const user = users.find((name) => comment.startsWith(`${name}@`));
  const owned =
    user === undefined
      ? comment
      : comment.replaceAll(user, '{user}').replaceAll(capital(user), '{User}');
  return PARTS.reduce((text, [part, placeholder]) => text.replace(part, placeholder), owned);
}

const capital = (name: string): string => `${name[0]?.toUpperCase()}${name.slice(1)}`;

/** Merges equal cases, the most frequent first. */
function counted<T extends object>(cases: readonly T[]): (T & { count: number })[] {
  const groups = Map.groupBy(cases, (each) => JSON.stringify(each));
  return [...groups.values()]
    .flatMap(([first, ...others]) =>
      first === undefined ? [] : [{ count: others.length + 1, ...first }],
    )
    .toSorted((a, b) => b.count - a.count);
}
