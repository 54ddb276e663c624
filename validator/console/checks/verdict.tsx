import { Link } from 'wouter';
import { Status } from '../parts/status.tsx';
import { paths } from '../paths.ts';
import { VERDICT_NAMES, type Verdict } from './verdicts.ts';

const TONES = { ok: 'good', failed: 'bad', withheld: 'warn' } as const;

/** Result of the check of a node. */
export function VerdictStatus({ verdict }: { verdict: Verdict }) {
  return <Status name={VERDICT_NAMES[verdict]} tone={TONES[verdict]} />;
}

/** Leads from a node to its evidence: by its name with the id on hover, or by its id where the name is unknown. */
export function NodeLink({ id, huid = null }: { id: string; huid?: string | null }) {
  return (
    <Link href={paths.nodeEvidence(id)} title={id}>
      {huid ?? <code>{id}</code>}
    </Link>
  );
}
