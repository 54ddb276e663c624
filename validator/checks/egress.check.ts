/** The host reaches the registries that pods pull from. */
import { failed, type Judge, passed, unknown } from './check.ts';

/** Registries have bad moments, too. */
const IN_A_ROW = 2;

export const judgeEgress: Judge = ({ measured: { egress } }) => {
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
