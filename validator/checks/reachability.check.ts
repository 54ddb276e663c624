/** Checks that an agent answers and that it is the enrolled one. Their failures end a run. */
import { ok, unknown } from '#shared/check/check.ts';
import { describePort } from '#shared/tls/port-protocol.ts';
import { type CheckOutcome, defineCheck, type Facts, fail, type Refusal } from './check.ts';
import type { PortFacts } from './measured.ts';

/** Messages and remedies for rejected answers. Refusals that are not listed concern `executor_identity`. */
const REJECTED: Partial<Record<Refusal, { message: string; remedy?: string }>> = {
  AGENT_ANSWER_INVALID: { message: 'The answer of the agent is not an inventory' },
  AGENT_REFUSED: { message: 'The agent rejects requests of the validator' },
  RESPONSE_UNSIGNED: {
    message: 'The answers are not signed with the key of the agent',
    remedy: 'Remove proxies that change answers between validator and agent; update the agent.',
  },
  TLS_PIN_MISMATCH: {
    message: 'The certificate is not the agent’s',
    remedy:
      'Remove proxies that terminate TLS between validator and agent, or let the agent serve their certificate.',
  },
  TLS_UNTRUSTED: {
    message: 'The certificate does not identify the agent',
    remedy: 'Serve TLS 1.3 with a certificate.',
  },
  TLS_CERTIFICATE_EXPIRED: {
    message: 'The certificate has expired',
    remedy: 'Renew the files of AGENT_TLS_CERT, or set the clock of the host.',
  },
};

export const reachability = defineCheck({
  id: 'reachability',
  detects: 'an agent that does not answer, or whose answers are invalid',
  required: 'a valid answer of the agent within 15 s',
  category: 'transport',
  fatal: true,
  whileRented: true,
  judge: () => ok('answered'),
  judgeAbsent({ transportError, refusal, executor, measured: { port } }) {
    const measured = transportError ?? 'no answer';
    if (refusal === null) {
      const cause =
        port === null ? '' : `; ${describePort(port.found, port.sent, 'the validator')}`;
      const failure = fail('AGENT_UNREACHABLE', measured + cause, 'The agent did not answer');
      return { ...failure, remedy: remedyFor(port, executor.executor_ip_port) };
    }
    const rejected = REJECTED[refusal];
    if (rejected === undefined) return ok('answered');
    const { message, ...remedy } = rejected;
    return { ...fail(refusal, measured, message), ...remedy };
  },
  remedies: {
    AGENT_UNREACHABLE: 'Start the agent and open its port to the validator.',
    AGENT_ANSWER_INVALID:
      'Update the agent: its version differs from the validator’s, or it was modified.',
    AGENT_REFUSED:
      'Read the measured reason: usually AGENT_TRUSTED_KEYS lacks the validator, or a clock is wrong. Run `npm run agent -- doctor`.',
  },
});

/** Names the agent's real port, and the steps that fit what the port answers. */
function remedyFor(port: PortFacts | null, number: string): string {
  const start = `Start the agent and open port ${number} to the validator.`;
  const compare = 'compare AGENT_PORT with the port of the node in the portal';
  if (port === null) return start;
  const { found, sent } = port;
  const cause = describePort(found, sent, 'the validator');
  switch (found) {
    case 'refused':
      return `${start} If the agent runs, ${compare}: no program listens at port ${number}.`;
    case 'no_answer':
    case 'unreachable':
      return `Open port ${number} to the validator in the firewalls of host and network, and compare the address of the node in the portal: ${cause}.`;
    case 'http':
    case 'tls':
      if (found !== sent)
        return `${MISMATCH[found]} If another program uses port ${number}, ${compare}: ${cause}.`;
      return `Find the program at port ${number} (ss -ltnp 'sport = :${number}'): it is no agent of this version. Restart or update the agent, or ${compare}.`;
    case 'other':
    case 'silent':
      return `Find the program at port ${number} (ss -ltnp 'sport = :${number}'): ${cause}. Restart the agent, or ${compare}.`;
  }
}

/** Remedies by what the port answers instead of what the validator sent. */
const MISMATCH = {
  http: 'Remove AGENT_TLS=off from the variables of the agent, update the agent and restart it.',
  tls: 'Remove VALIDATOR_AGENT_TLS=off from the variables of the validator.',
};

const ENROL = 'Enrol the agent again: npm run agent -- enrol --help.';

const changed = (measured: string) => fail('IDENTITY_CHANGED', measured, 'Another agent answers');
const notEnrolled = (measured: string) =>
  fail('NOT_ENROLLED', measured, 'The provider has not enrolled this agent');

export const executorIdentity = defineCheck({
  id: 'executor_identity',
  detects: 'an agent of another executor',
  required: 'the identity key that the provider enrolled for this executor id',
  category: 'policy',
  fatal: true,
  whileRented: true,
  judge({ inventory, identity, executor, receivedMs }) {
    if (identity === null) return unknown('no identity');
    if (inventory.executor_id !== executor.id) {
      const remedy = `Set AGENT_EXECUTOR_ID=${executor.id} on this host and restart the agent.`;
      return { ...changed(inventory.executor_id), remedy };
    }
    if (identity.enrolledUntilMs <= receivedMs) return notEnrolled('its enrolment has ended');
    return ok(identity.publicKey);
  },
  judgeAbsent({ refusal, transportError, executor }: Facts): CheckOutcome {
    const measured = transportError ?? 'no inventory';
    if (refusal === 'NOT_ENROLLED') {
      const find = `Make sure that the program at port ${executor.executor_ip_port} is the agent.`;
      return { ...notEnrolled(measured), remedy: `${find} ${ENROL}` };
    }
    return refusal === 'IDENTITY_CHANGED' ? changed(measured) : unknown(measured);
  },
  remedies: { IDENTITY_CHANGED: ENROL, NOT_ENROLLED: ENROL },
});
