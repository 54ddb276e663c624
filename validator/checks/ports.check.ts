/** The validator reaches ports of the range that pods get, and each answers for itself. */
import { failed, type Judge, passed, unknown } from './check.ts';

/** What is on the way may be down for a moment. */
const IN_A_ROW = 2;
/** An agent may be busy when it is asked; one that always is has something to hide. */
const REFUSED_IN_A_ROW = 3;

const USED_OTHERWISE =
  'Give the agent a range of ports (AGENT_PORT_RANGE) that nothing else on the host uses.';

export const judgePorts: Judge = ({ measured: { ports }, inventory, policy }) => {
  if (ports === null) return unknown('not asked');
  const { opened, reached, problem, refused, repeated } = ports;
  const again = { inARow: IN_A_ROW, isRepeated: repeated };
  if (refused) {
    const failure = failed('PORTS_REFUSED', problem ?? '', 'The agent would not open its ports');
    return { ...failure, inARow: REFUSED_IN_A_ROW, isRepeated: repeated };
  }
  const { first, last } = inventory.ports;
  // A small range has no more, and one of none is no range.
  const needed = Math.max(1, Math.min(policy.checks.min_ports_reached, last - first + 1));
  if (opened < needed) {
    const words = `${opened} could be opened, of ${first} to ${last}`;
    const failure = failed('PORTS_REFUSED', words, 'The agent opens too few of its ports');
    return { ...failure, inARow: REFUSED_IN_A_ROW, isRepeated: repeated, remedy: USED_OTHERWISE };
  }
  const words = problem === null ? '' : `; ${problem}`;
  const measured = `${reached} of ${opened} reached${words}`;
  if (reached === opened) return passed(measured);
  if (reached === 0) {
    return { ...failed('PORTS_CLOSED', measured, 'No port of pods is reached'), ...again };
  }
  const message = 'Not every port of pods is reached';
  if (reached >= needed) return { status: 'passed', measured, warning: message };
  return { ...failed('PORTS_PARTIAL', measured, message), ...again };
};
