import { Link } from 'wouter';
import { Status } from '../parts/status.tsx';
import { paths } from '../paths.ts';

const TONES = { ok: 'good', failed: 'bad', withheld: 'warn' } as const;
const NAMES = { ok: 'Passed', failed: 'Failed', withheld: 'Withheld' } as const;

export type Verdict = keyof typeof TONES;

/** Result of the check of a node. */
export function VerdictStatus({ verdict }: { verdict: Verdict }) {
  return <Status name={NAMES[verdict]} tone={TONES[verdict]} />;
}

/** Leads from the id of a node to its evidence. */
export function NodeLink({ id }: { id: string }) {
  return (
    <Link href={paths.nodeEvidence(id)}>
      <code>{id}</code>
    </Link>
  );
}
