/** The agent answers signed requests at its address, and signs its answers. */
import { type Facts, failed, type Outcome, passed, type Refusal } from './check.ts';

/** What an answer that was not believed is called; of the others the identity's check tells. */
const DISTRUSTED: Partial<Record<Refusal, [message: string, remedy: string]>> = {
  RESPONSE_UNSIGNED: [
    'The answers are not signed with the key of the agent',
    'Let nothing between validator and agent change answers; update the agent.',
  ],
  TLS_PIN_MISMATCH: [
    'The certificate is not the agent’s',
    'Let nothing between validator and agent end TLS; give the agent its certificate to serve.',
  ],
  TLS_UNTRUSTED: ['It shows no certificate to know it by', 'Serve TLS 1.3 with a certificate.'],
  TLS_CERTIFICATE_EXPIRED: [
    'The certificate has expired',
    'Renew the files of AGENT_TLS_CERT, or set the clock of the host.',
  ],
};

/** The remedies stand in the table. */
const USELESS: Partial<Record<Refusal, string>> = {
  AGENT_ANSWER_INVALID: 'The agent answers, but with something else than an inventory',
  AGENT_REFUSED: 'The agent answers, and refuses the validator',
};

/** Of an executor without an inventory. */
export function judgeUnreached({ transportError, refusal }: Facts): Outcome {
  const measured = transportError ?? 'no answer';
  if (refusal === null) return failed('AGENT_UNREACHABLE', measured, 'The agent did not answer');
  const useless = USELESS[refusal];
  if (useless !== undefined) return failed(refusal, measured, useless);
  const distrusted = DISTRUSTED[refusal];
  if (distrusted === undefined) return passed('answered');
  const [message, remedy] = distrusted;
  return { ...failed(refusal, measured, message), remedy };
}
