import { useQuery } from '@tanstack/react-query';
import { load } from '../browser/load.ts';
import { sha256Hex } from '../browser/sha256.ts';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Status } from '../parts/status.tsx';
import { useApi } from '../session/queries.tsx';
import type { Proof, ProofPorts } from './proof.ts';

type ProofPanelProps = {
  /** Identifies the record with its content, so that a changed record is verified again. */
  record: object;
  prove: (ports: ProofPorts) => Promise<Proof>;
};

/** Verifies a record in the browser, without the server's help, and shows each step. */
export function ProofPanel({ record, prove }: ProofPanelProps) {
  const query = useQuery<Proof, Error>({
    queryKey: ['proof', record],
    queryFn: async () => {
      const { isSignedBy } = await load(() => import('./signature.ts'));
      return prove({ isSignedBy, sha256Hex });
    },
  });
  const validator = useApi('GET /operator/validator', {});
  return (
    <QueryPanel title="Signature" query={query}>
      {({ isGood, signer, steps }) => (
        <>
          <p>
            <Status
              name={isGood === null ? 'Not fully verified' : isGood ? 'Verified' : 'Not valid'}
              tone={isGood === null ? 'warn' : isGood ? 'good' : 'bad'}
            />{' '}
            {isGood === false
              ? 'This record is not what the validator signed. Export the evidence store on the validator’s host and compare.'
              : 'Verified by this browser against key'}{' '}
            {signer === null ? null : <code>{signer}</code>}
          </p>
          {validator.error === null ? null : (
            <FailureNotice error={validator.error} retry={() => void validator.refetch()} />
          )}
          {signer === null || validator.data === undefined ? null : (
            <p>
              {signer === validator.data.hotkey
                ? 'This is the present key of the validator.'
                : 'This is not the present key of the validator. It may be an earlier key; the key set of the agents states when it was valid.'}
            </p>
          )}
          <ul className="plain">
            {steps.map((step) => (
              <li key={step.text}>
                <Status
                  name={step.isGood === null ? 'Needs TLS' : step.isGood ? 'Yes' : 'No'}
                  tone={step.isGood === null ? 'warn' : step.isGood ? 'good' : 'bad'}
                />{' '}
                {step.text}
              </li>
            ))}
          </ul>
        </>
      )}
    </QueryPanel>
  );
}
