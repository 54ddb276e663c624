/** Checks of the host's network: ports of pods from outside, registries and template images from inside. */
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, fail, moot, READ_LOG_AND_RESTART, warn } from './check.ts';
import { PERMILLE } from './check-policy.ts';
import type { Others } from './measured.ts';

/** Consecutive failures at which a check fails: a network or a registry may be down for a short time. */
const IN_A_ROW = 2;
/** Consecutive refusals at which a check fails: an agent may be busy once. */
const REFUSED_IN_A_ROW = 3;

const OTHER_LISTENERS =
  'Set AGENT_PORT_RANGE to a range of ports that no other program on the host uses.';

export const ports = defineCheck({
  id: 'ports',
  detects: 'unreachable ports of pods',
  required:
    'the agent opens at least `min_ports_permille` (policy) of the sampled ports, and the validator can connect to as many',
  category: 'env',
  isTrial: true,
  judge({ measured: { ports: found }, inventory, policy }) {
    if (found === null) return unknown('not queried');
    const { asked, opened, reached, problem, refused, others, repeated } = found;
    const again = { inARow: IN_A_ROW, isRepeated: repeated };
    if (refused) {
      const failure = fail('PORTS_REFUSED', problem ?? '', 'The agent refused to open its ports');
      return { ...failure, inARow: REFUSED_IN_A_ROW, isRepeated: repeated };
    }
    const { first, last } = inventory.ports;
    const share = policy.checks.min_ports_permille / PERMILLE;
    // An empty range fails.
    const needed = Math.max(1, Math.ceil((asked ?? opened) * share));
    if (opened < needed) {
      const measured = `${opened} of ${asked ?? 0} could be opened, of ${first} to ${last}`;
      const failure = fail('PORTS_REFUSED', measured, 'The agent opens too few of its ports');
      return {
        ...failure,
        inARow: REFUSED_IN_A_ROW,
        isRepeated: repeated,
        remedy: OTHER_LISTENERS,
      };
    }
    const suffix = problem === null ? '' : `; ${problem}`;
    const measured = `${reached} of ${opened} reached${suffix}`;
    if (reached === opened) return ok(measured);
    if (reached === 0 && isShared(others)) {
      return unknown(`${measured}, and few other hosts are reached`);
    }
    if (reached === 0) {
      return { ...fail('PORTS_CLOSED', measured, 'No port of pods is reachable'), ...again };
    }
    const message = 'Some ports of pods are unreachable';
    if (reached >= needed) return warn(measured, message);
    return { ...fail('PORTS_PARTIAL', measured, message), ...again };
  },
  remedies: {
    PORTS_CLOSED: 'Forward the range of pod ports (AGENT_PORT_RANGE) to the host.',
    PORTS_PARTIAL: 'Forward the whole range of pod ports, each to the same number.',
    PORTS_REFUSED: READ_LOG_AND_RESTART,
  },
});

/** Returns true if most other hosts fail the test too: then a registry or the validator's uplink is at fault. */
const isShared = (others: Others): boolean => others !== null && others.reached * 2 < others.tried;

export const egress = defineCheck({
  id: 'egress',
  detects: 'a host that cannot reach image registries',
  required:
    'the engine can read the digest of an image from its registry, unless most other hosts cannot either',
  category: 'env',
  isTrial: true,
  judge({ measured: { egress: found }, policy }) {
    if (found === null && policy.checks.egress_image === null) return moot('not required');
    if (found === null) return unknown('not queried');
    if (found.registry === 'unknown') return unknown(found.problem);
    if (found.registry === 'answers') return ok('a registry answers');
    if (isShared(found.others)) return unknown(`${found.problem}, as on most other hosts`);
    const failure =
      found.registry === 'blocked'
        ? fail('EGRESS_BLOCKED', found.problem, 'The host does not reach the network')
        : fail('REGISTRY_UNREACHABLE', found.problem, 'No registry answers the host');
    return { ...failure, inARow: IN_A_ROW, isRepeated: found.repeated };
  },
  remedies: {
    EGRESS_BLOCKED: 'Let the host open connections to the internet.',
    REGISTRY_UNREACHABLE:
      'Try `docker pull hello-world`, and correct the engine’s proxy or mirror.',
  },
});

export const templateCache = defineCheck({
  id: 'template_cache',
  detects: 'a host that cannot start the market’s templates',
  required:
    'the images `template_images` of the policy are on the host or can be pulled, unless most other hosts cannot pull them either',
  category: 'env',
  mode: 'shadow',
  isTrial: true,
  judge({ measured: { templates }, policy }) {
    if (templates === null && policy.checks.template_images.length === 0) {
      return moot('not required');
    }
    const images = templates?.images ?? [];
    const missing = images.filter(
      ({ image, state }) => state === 'missing' && !templates?.unavailable.includes(image),
    );
    if (templates !== null && missing.length > 0) {
      const measured = missing.map(({ image, problem }) => `${image}: ${problem}`).join('; ');
      const failure = fail('TEMPLATE_NOT_CACHED', measured, 'Templates cannot be started');
      return { ...failure, inARow: IN_A_ROW, isRepeated: templates.repeated };
    }
    const known = images.filter(({ state }) => state === 'present' || state === 'pullable');
    if (known.length === 0) return unknown(templates === null ? 'not queried' : 'not reported');
    const present = known.filter(({ state }) => state === 'present');
    return ok(`${present.length} of ${images.length} present`);
  },
  remedies: { TEMPLATE_NOT_CACHED: 'Run `docker pull` with the image that the check names.' },
});
