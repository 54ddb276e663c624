/** The host reaches the registries that pods pull from, and can have the images of templates. */
import { failed, type Judge, moot, passed, unknown } from './check.ts';

/** Registries have bad moments, too. */
const IN_A_ROW = 2;

export const judgeEgress: Judge = ({ measured: { egress }, policy }) => {
  if (egress === null && policy.checks.egress_image === null) return moot('not asked');
  if (egress === null || egress.registry === 'unknown') {
    return unknown(egress === null ? 'not asked' : egress.problem);
  }
  if (egress.registry === 'answers') return passed('a registry answers');
  const again = { inARow: IN_A_ROW, isRepeated: egress.repeated };
  const failure =
    egress.registry === 'blocked'
      ? failed('EGRESS_BLOCKED', egress.problem, 'The host does not reach the network')
      : failed('REGISTRY_UNREACHABLE', egress.problem, 'No registry answers the host');
  return { ...failure, ...again };
};

export const judgeTemplates: Judge = ({ measured: { templates }, policy }) => {
  if (templates === null && policy.checks.template_images.length === 0) return moot('not asked');
  const images = templates?.images ?? [];
  const missing = images.filter(({ state }) => state === 'missing');
  const [first] = missing;
  if (templates !== null && first !== undefined) {
    const measured = missing.map(({ image, problem }) => `${image}: ${problem}`).join('; ');
    const failure = failed('TEMPLATE_NOT_CACHED', measured, 'Templates cannot be started');
    return { ...failure, inARow: IN_A_ROW, isRepeated: templates.repeated };
  }
  const known = images.filter(({ state }) => state !== 'unknown');
  if (known.length === 0) return unknown(templates === null ? 'not asked' : 'not told');
  const present = known.filter(({ state }) => state === 'present');
  return passed(`${present.length} of ${images.length} present`);
};
